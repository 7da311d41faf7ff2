"""Velocidad y memoria de entrenar en CPU, al lado de transformers y de nosotros mismos sin cada mejora.

    python bench/train_speed.py steps [--model mini]… [--threads N]  tokens/s, FLOP/s frente al GEMM y memoria máxima
    python bench/train_speed.py startup                              de la orden al primer paso, en frío y en caliente
    python bench/train_speed.py loader                               lo que da el cargador frente a lo que se consume

Cada sistema es un proceso y dan un paso por turnos: lo que estorbe a uno estorba a todos, así que las razones valen
aunque la máquina esté ocupada; los absolutos, no. Con `--threads 1` se cuenta el tiempo de CPU del proceso y no el de
reloj, y entonces lo que hagan otros casi no entra. Un paso es ida, vuelta y AdamW fundido sobre las mismas secuencias.
"""

import argparse
import contextlib
import ctypes
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import IO, Any, cast

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from enlace.config import find_run, load_run
from enlace.config.schema import Run
from enlace.data import open_data, write_shard_set
from enlace.errors import guard
from enlace.model import Transformer
from enlace.model.accounting import flops_per_token
from enlace.model.directory import hf_config
from enlace.train.backends import available_threads, measure_cpu_flops, open_backend
from enlace.train.compiled import cache_folder, compile_blocks
from enlace.train.step import forward_loss
from enlace.train.train import build_objective

SEQUENCE = 512
TOKENS = {"mini": 4096, "tiny-50m": 2048}
"""Tokens por paso de cada modelo de configs/model/."""
PEER = "transformers"
ENLACE = "enlace"
EAGER = "enlace sin compilar"
WHOLE_LOGITS = "enlace con los logits enteros"
FACTORY_MALLOC = "enlace con malloc de fábrica"
SYSTEMS = (PEER, ENLACE, EAGER, WHOLE_LOGITS, FACTORY_MALLOC)
GEMM = "GEMM"
M_MMAP_THRESHOLD, MALLOC_DEFAULT = -3, 128 * 1024

Step = Callable[[], None]


def compose(model: str, *changes: str) -> Run:
    """La corrida pretrain-cpu con ese modelo y un paso de una sola pasada."""
    size = [f"train.sequence_length={SEQUENCE}", f"train.batch_size={TOKENS[model] // SEQUENCE}"]
    return load_run(find_run("pretrain-cpu"), [f"include.model={model}", *size, *changes]).run


def build_step(system: str, run: Run, ids_BT: Tensor) -> Step:
    """El paso de un sistema. El optimizador es el mismo para todos."""
    parameters, loss = build_loss(system, run, ids_BT)
    optimizer = torch.optim.AdamW(parameters, lr=1e-4, fused=True)

    def step() -> None:
        loss().backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)

    return step


def build_loss(system: str, run: Run, ids_BT: Tensor) -> tuple[list[Tensor], Callable[[], Tensor]]:
    """Los parámetros de un sistema y su pérdida sobre esas secuencias."""
    if system == PEER:
        return _transformers(run, ids_BT)
    backend = open_backend(run.hardware, seed=run.train.seed)
    if system == FACTORY_MALLOC:
        ctypes.CDLL(None).mallopt(M_MMAP_THRESHOLD, MALLOC_DEFAULT)
    objective, _ = build_objective(run, backend)
    if run.hardware.compile and system != EAGER:
        compile_blocks(objective.model, cache_folder(Path(__file__), SYSTEMS.index(system)))

    def chunked() -> Tensor:
        nll, z_loss = forward_loss(backend, objective, ids_BT)
        return (nll + z_loss) / ids_BT[:, 1:].numel()

    def whole() -> Tensor:
        logits_NV = objective.model(ids_BT[:, :-1]).flatten(0, 1)
        z_loss = run.train.z_loss * logits_NV.logsumexp(-1).square().mean()
        return F.cross_entropy(logits_NV, ids_BT[:, 1:].flatten()) + z_loss

    return list(objective.parameters()), whole if system == WHOLE_LOGITS else chunked


def _transformers(run: Run, ids_BT: Tensor) -> tuple[list[Tensor], Callable[[], Tensor]]:
    from transformers import Qwen3Config, Qwen3ForCausalLM

    shape = hf_config(Transformer(run.model), {})
    model = Qwen3ForCausalLM(Qwen3Config(**{**shape, "use_cache": False})).train()
    inputs, labels = ids_BT[:, :-1], ids_BT[:, 1:].contiguous()
    return list(model.parameters()), lambda: model(input_ids=inputs, labels=labels, shift_labels=labels).loss


def worker(system: str, model: str, threads: int) -> None:
    """Un proceso medido: por cada línea que le llega da un paso y contesta (segundos, memoria máxima en bytes)."""
    run = compose(model, f"hardware.threads={threads}")
    torch.set_num_threads(threads or available_threads())
    # Con varios hilos, el que espera a otro también gasta CPU.
    clock = time.process_time if threads == 1 else time.perf_counter
    if system == GEMM:
        for _ in sys.stdin:
            print(json.dumps([measure_cpu_flops(), 0]), flush=True)
        return
    generator = torch.Generator().manual_seed(0)
    ids_BT = torch.randint(0, run.model.vocab_size, (run.train.batch_size, SEQUENCE + 1), generator=generator)
    before = _peak_bytes()
    step = build_step(system, run, ids_BT)
    for _ in sys.stdin:
        start = clock()
        step()
        print(json.dumps([clock() - start, _peak_bytes() - before]), flush=True)


def _peak_bytes() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


@contextlib.contextmanager
def workers(systems: Sequence[str], model: str, threads: int) -> Iterator[dict[str, Callable[[], list[float]]]]:
    """Un proceso por sistema, cada uno esperando a que le pidan un paso."""
    with contextlib.ExitStack() as stack:
        asks = {}
        for system in systems:
            command = [sys.executable, __file__, "worker", system, model, str(threads)]
            process = stack.enter_context(
                subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
            )
            stack.callback(process.kill)
            asks[system] = lambda process=process: _ask(process)
        yield asks


def _ask(process: "subprocess.Popen[str]") -> list[float]:
    asking, answering = cast(IO[str], process.stdin), cast(IO[str], process.stdout)
    asking.write("\n")
    asking.flush()
    answer: list[float] = json.loads(answering.readline())
    return answer


def steps(model: str, rounds: int, systems: Sequence[str], threads: int) -> dict[str, Any]:
    """Mide los sistemas por turnos; el primer paso de cada uno, que compila o calienta, no cuenta."""
    run = compose(model)
    with workers([*systems, GEMM], model, threads) as asks:
        first = {system: asks[system]()[0] for system in systems}
        seconds: dict[str, list[float]] = {system: [] for system in asks}
        peak: dict[str, float] = {}
        for _ in range(rounds):
            for system, ask in asks.items():
                spent, peak[system] = ask()
                seconds[system].append(spent)
    flops = flops_per_token(run.model, SEQUENCE) * TOKENS[model]
    gemm = max(seconds.pop(GEMM))
    return {
        "model": model,
        "gemm_flops": gemm,
        "systems": {
            system: {
                "tokens_per_second": TOKENS[model] / min(spent),
                "median_tokens_per_second": TOKENS[model] / statistics.median(spent),
                "ratio": statistics.median(a / b for a, b in zip(seconds[systems[0]], spent, strict=True)),
                "share_of_gemm": flops / min(spent) / gemm,
                "peak_bytes": peak[system],
                "first_step_seconds": first[system],
            }
            for system, spent in seconds.items()
        },
    }


def startup() -> dict[str, float]:
    """Segundos de `python -m enlace.train.train smoke-cpu` a su primera línea de log.jsonl, sin y con lo compilado."""
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        text = "\n".join(json.dumps({"id": str(n), "text": f"Texto número {n}. " * 40}) for n in range(400))
        (root / "texto.jsonl").write_text(text, encoding="utf-8")
        return {name: _first_step(root, name) for name in ("en frío", "en caliente")}


def _first_step(root: Path, name: str) -> float:
    sources = json.dumps([{"name": "texto", "path": str(root / "texto.jsonl"), "weight": 1.0}])
    command = [sys.executable, "-m", "enlace.train.train", "smoke-cpu", f"data.sources={sources}", "name=arranque"]
    environment = {**os.environ, "XDG_CACHE_HOME": str(root / "cache")}
    start = time.perf_counter()
    with (
        (root / "salida").open("wb") as output,
        subprocess.Popen(
            [*command, f"runs_dir={root / 'runs'}"], env=environment, stdout=output, stderr=output
        ) as process,
    ):
        log = root / "runs" / "arranque" / "log.jsonl"
        while not (log.exists() and log.stat().st_size):
            if process.poll() is not None:
                sys.exit((root / "salida").read_text())
            time.sleep(0.01)
        seconds = time.perf_counter() - start
        process.kill()
    # La carpeta de la corrida es la misma las dos veces, porque de ella depende la de lo compilado.
    (root / "runs").rename(root / f"runs {name}")
    return seconds


def loader(tokens: int = 2**24, batches: int = 2000) -> dict[str, float]:
    """Tokens/s que da el cargador leyendo shards al azar, con las secuencias y lotes de pretrain-cpu."""
    run = compose("mini")
    with tempfile.TemporaryDirectory() as folder:
        ids = np.random.default_rng(0).integers(0, run.model.vocab_size - 1, tokens, dtype=np.uint16)
        write_shard_set(
            Path(folder) / "shards",
            {"train": np.split(ids, 2**12), "validation": []},
            tokenizer_sha256="0" * 64,
            end_of_text=run.model.vocab_size - 1,
            text_bytes={"train": 4 * tokens, "validation": 0},
            shard_tokens=2**22,
        )
        source = {"name": "bench", "path": str(Path(folder) / "shards"), "weight": 1.0}
        mixture = open_data(run.data.model_validate({**run.data.model_dump(), "sources": [source]}), 2**15).train
        start = time.perf_counter()
        for number in range(batches):
            mixture.batch(number * run.train.batch_size, run.train.batch_size, SEQUENCE, run.train.seed)
        seconds = time.perf_counter() - start
    return {"tokens_per_second": batches * run.train.batch_size * SEQUENCE / seconds}


def table(result: dict[str, Any]) -> str:
    """Lo medido de un modelo, en Markdown."""
    lines = [
        f"### {result['model']} · GEMM {result['gemm_flops'] / 1e9:.0f} GFLOP/s",
        "",
        "| sistema | tokens/s (mejor) | razón (mediana) | parte del GEMM | memoria máxima | primer paso |",
        "|---|---|---|---|---|---|",
    ]
    for system, row in result["systems"].items():
        cells = (
            f"{row['tokens_per_second']:.0f}",
            f"{row['ratio']:.2f}",
            f"{100 * row['share_of_gemm']:.0f} %",
            f"{row['peak_bytes'] / 2**20:.0f} MiB",
            f"{row['first_step_seconds']:.1f} s",
        )
        lines.append(f"| {system} | " + " | ".join(cell.replace(".", ",") for cell in cells) + " |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python bench/train_speed.py", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    measuring = commands.add_parser("steps", help="tokens/s y memoria")
    measuring.add_argument("--model", action="append", choices=TOKENS)
    measuring.add_argument("--system", action="append", choices=SYSTEMS)
    measuring.add_argument("--rounds", type=int, default=8)
    measuring.add_argument("--threads", type=int, default=0, help="0: todos")
    measuring.add_argument("--json", action="store_true")
    commands.add_parser("startup", help="de la orden al primer paso")
    commands.add_parser("loader", help="lo que da el cargador")
    child = commands.add_parser("worker")
    child.add_argument("system")
    child.add_argument("model")
    child.add_argument("threads", type=int)
    options = parser.parse_args()
    if options.command == "worker":
        worker(options.system, options.model, options.threads)
    elif options.command == "steps":
        for model in options.model or TOKENS:
            result = steps(model, options.rounds, options.system or SYSTEMS, options.threads)
            print(json.dumps(result, ensure_ascii=False) if options.json else table(result) + "\n", flush=True)
    else:
        print(json.dumps(startup() if options.command == "startup" else loader(), ensure_ascii=False))


if __name__ == "__main__":
    sys.exit(guard(main))
