"""Qué receta aprende más con el mismo cómputo: experimentos declarados en bench/quality.yaml.

    python bench/quality.py prepare CORPUS [--files PATRÓN] [--vocab N]   tokeniza el corpus (una vez)
    python bench/quality.py run GRUPO…                                    da las celdas que falten
    python bench/quality.py table [GRUPO…]                                enseña lo medido

Cada celda (receta × semilla) es un proceso con un hilo que entrena de verdad, con el bucle del producto, y apunta sus
bits por byte de validación. El presupuesto de una receta es el tiempo de CPU en el que la receta `base` lee los tokens
del grupo: las dos se cronometran a la vez, paso a paso, para que una máquina ocupada estropee lo menos posible la
proporción. Repetir la orden sigue donde quedó.
"""

import argparse
import hashlib
import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, cast

import numpy as np
import torch
import zstandard
from numpy.typing import NDArray
from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers, trainers

from enlace.config import find_run, load_run
from enlace.config.schema import Run
from enlace.config.yaml12 import read_file
from enlace.data import write_shard_set
from enlace.durable import read_log
from enlace.errors import ConfigError, guard
from enlace.train.backends import open_backend
from enlace.train.state import SilentLog, TrainingState
from enlace.train.step import optimizer_step
from enlace.train.train import build_state
from enlace.train.validate import validation_bits_per_byte

HERE = Path(__file__).parent
EXPERIMENTS = HERE / "quality.yaml"
CACHE = Path("data/bench-quality")
SHARDS = CACHE / "shards"
RESULTS = CACHE / "results.jsonl"
# El de Qwen2, el mismo que llevará el tokenizer propio.
WORDS = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
END_OF_TEXT = "<|endoftext|>"
HELD_OUT = 6  # de 256: las obras cuyo hash empieza por debajo son de validación y no se entrenan nunca
CALIBRATION_STEPS = 8
"""Pasos cronometrados por turnos de cada receta; cuenta la mediana."""

Recipe = Mapping[str, Any]


def documents(files: Sequence[Path], *, validation: bool) -> Iterator[str]:
    """Los textos de una de las dos partes, partida por obra."""
    for path in files:
        with path.open("rb") as raw, zstandard.ZstdDecompressor().stream_reader(raw) as stream:
            for line in stream.read().splitlines():
                document = json.loads(line)
                held_out = int(hashlib.sha256(document["work"].encode()).hexdigest()[:2], 16) < HELD_OUT
                if held_out == validation:
                    yield document["text"]


def prepare(corpus: Path, pattern: str, vocab_size: int) -> None:
    """Entrena un BPE de bytes con una cuarta parte de los textos y deja el corpus en shards."""
    files = sorted(corpus.glob(pattern))
    if not files:
        sys.exit(f"error: no hay ficheros {pattern} en {corpus}")
    tokenizer = train_tokenizer(
        [text for n, text in enumerate(documents(files, validation=False)) if n % 4 == 0], vocab_size
    )
    sizes = {"train": 0, "validation": 0}

    def encoded(split: str) -> Iterator[NDArray[np.uint16]]:
        for text in documents(files, validation=split == "validation"):
            sizes[split] += len(text.encode())
            yield np.array(tokenizer.encode(text).ids, dtype=np.uint16)

    digest = hashlib.sha256(tokenizer.to_str().encode()).hexdigest()
    write_shard_set(
        SHARDS,
        {"train": encoded("train"), "validation": encoded("validation")},
        tokenizer_sha256=digest,
        end_of_text=tokenizer.token_to_id(END_OF_TEXT),
        text_bytes=sizes,
        shard_tokens=2**24,
    )
    print(f"{SHARDS}: {sizes['train']} bytes de entrenamiento y {sizes['validation']} de validación")


def train_tokenizer(texts: Sequence[str], vocab_size: int) -> Tokenizer:
    """BPE de bytes sin normalizar."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(WORDS), behavior="isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    tokenizer.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(
        vocab_size=vocab_size, special_tokens=[END_OF_TEXT], initial_alphabet=alphabet, show_progress=False
    )
    tokenizer.train_from_iterator(texts, trainer)
    return tokenizer


def compose(experiments: Mapping[str, Any], recipe: Recipe, seed: int, steps: int) -> Run:
    """La corrida de una receta con ese número de pasos."""
    shares = {name: recipe.get(name, experiments[name]) for name in ("warmup_share", "decay_share")}
    settings = {**experiments["base"], **{key: value for key, value in recipe.items() if "." in key}}
    settings |= {
        "train.seed": seed,
        "train.steps": steps,
        "train.schedule.warmup_steps": max(1, round(shares["warmup_share"] * steps)),
        "train.schedule.decay_steps": round(shares["decay_share"] * steps),
        "train.evaluation.every": steps,
        "train.checkpoints.every": steps,
        "data.sources": [{"name": "bench", "path": str(SHARDS), "weight": 1.0}],
    }
    written = [f"{key}={json.dumps(value)}" for key, value in {**experiments["fixed"], **settings}.items()]
    return load_run(find_run(experiments["run"]), written).run


def open_state(run: Run, folder: Path) -> TrainingState:
    """Una corrida lista para dar pasos."""
    return build_state(run, open_backend(run.hardware, seed=run.train.seed), folder, SilentLog())


@torch.no_grad()
def silence_residuals(state: TrainingState) -> None:
    """A cero lo que escribe en el flujo residual: cada bloque empieza sin hacer nada."""
    for name, parameter in state.model.named_parameters():
        if name.endswith(("o_proj.weight", "down_proj.weight")):
            parameter.zero_()


def relative_cost(experiments: Mapping[str, Any], recipe: Recipe, seed: int) -> float:
    """Tiempo de CPU por token de la receta dividido por el de la base."""
    with tempfile.TemporaryDirectory() as folder:
        states = [
            open_state(compose(experiments, each, seed, 1000), Path(folder) / name)
            for name, each in (("base", {}), ("recipe", recipe))
        ]
        seconds: list[list[float]] = [[], []]
        for _ in range(CALIBRATION_STEPS):
            for state, spent in zip(states, seconds, strict=True):
                start = time.process_time()
                optimizer_step(state)
                spent.append((time.process_time() - start) / state.run.tokens_per_step)
        return statistics.median(seconds[1][2:]) / statistics.median(seconds[0][2:])


def measure(experiments: Mapping[str, Any], group: str, name: str, seed: int) -> dict[str, Any]:
    """Entrena una celda y dice qué ha salido."""
    chosen = experiments["groups"][group]
    recipe = {**chosen.get("with", {}), **chosen["recipes"][name]}
    cost = relative_cost(experiments, recipe, seed) if chosen["equal"] == "cpu" else 1.0
    tokens = chosen["tokens"] / cost
    run = compose(experiments, recipe, seed, 1000)
    run = compose(experiments, recipe, seed, max(2, round(tokens / run.tokens_per_step)))
    with tempfile.TemporaryDirectory() as folder:
        state = open_state(run, Path(folder))
        if recipe.get("zero_residual"):
            silence_residuals(state)
        start = time.process_time()
        losses = []
        while state.counters.step < run.train.steps:
            losses.append(optimizer_step(state).loss)
            state.counters.step += 1
            state.counters.samples += run.train.batch_size
        seconds = time.process_time() - start
        validation = validation_bits_per_byte(state)
    return {
        "group": group,
        "recipe": name,
        "settings": dict(recipe),
        "seed": seed,
        "relative_cost": cost,
        "steps": run.train.steps,
        "tokens": run.train.steps * run.tokens_per_step,
        "cpu_seconds": seconds,
        "train_loss": statistics.mean(losses[-20:]),
        "validation": validation,
    }


def run_groups(names: Sequence[str]) -> None:
    """Las celdas que aún no están en los resultados, cada una en su proceso."""
    experiments = load_experiments()
    for group in names:
        for seed in experiments["groups"][group]["seeds"]:
            for recipe in experiments["groups"][group]["recipes"]:
                if not any((row["group"], row["recipe"], row["seed"]) == (group, recipe, seed) for row in results()):
                    command = [sys.executable, __file__, "cell", group, recipe, str(seed)]
                    subprocess.run(command, check=True)


def run_cell(group: str, recipe: str, seed: int) -> None:
    """Una celda, en este proceso y con un hilo."""
    row = measure(load_experiments(), group, recipe, seed)
    with RESULTS.open("a", encoding="utf-8") as file:
        file.write(json.dumps(row, ensure_ascii=False) + "\n")
    print(f"{group} · {recipe} · semilla {seed}: {row['validation']:.4f} bits/byte", flush=True)


def table(names: Sequence[str]) -> str:
    """Una tabla en Markdown por grupo: media y dispersión de las semillas, de mejor a peor."""
    parts = []
    for group in names or dict.fromkeys(row["group"] for row in results()):
        rows = [row for row in results() if row["group"] == group]
        lines = [
            f"### {group}",
            "",
            "| receta | bits por byte | semillas | tokens | coste por token |",
            "|---|---|---|---|---|",
        ]
        recipes = {row["recipe"]: [other for other in rows if other["recipe"] == row["recipe"]] for row in rows}
        for recipe, cells in sorted(
            recipes.items(), key=lambda item: statistics.mean(c["validation"] for c in item[1])
        ):
            scores = [cell["validation"] for cell in cells]
            spread = f" ± {statistics.stdev(scores):.3f}" if len(scores) > 1 else ""
            tokens = statistics.mean(cell["tokens"] for cell in cells)
            cost = statistics.mean(cell["relative_cost"] for cell in cells)
            score = f"{statistics.mean(scores):.3f}{spread}"
            lines.append(f"| {recipe} | {score} | {len(cells)} | {tokens / 1000:.0f} k | {cost:.2f} |")
        parts.append("\n".join(lines).replace(".", ","))
    return "\n\n".join(parts)


def results() -> list[dict[str, Any]]:
    """Las celdas ya medidas."""
    return [dict(row) for row in read_log(RESULTS)] if RESULTS.exists() else []


def load_experiments() -> dict[str, Any]:
    """Los experimentos declarados."""
    tree, problems = read_file(EXPERIMENTS)
    if tree is None or problems:
        raise ConfigError(problems)
    return cast(dict[str, Any], tree.plain())


def main() -> None:
    parser = argparse.ArgumentParser(prog="python bench/quality.py", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    preparing = commands.add_parser("prepare", help="tokeniza el corpus")
    preparing.add_argument("corpus", type=Path)
    preparing.add_argument("--files", default="*.jsonl.zst")
    preparing.add_argument("--vocab", type=int, default=4096)
    commands.add_parser("run", help="da las celdas que falten").add_argument("groups", nargs="+")
    commands.add_parser("table", help="enseña lo medido").add_argument("groups", nargs="*")
    cell = commands.add_parser("cell")
    cell.add_argument("group")
    cell.add_argument("recipe")
    cell.add_argument("seed", type=int)
    options = parser.parse_args()
    if options.command == "prepare":
        prepare(options.corpus, options.files, options.vocab)
    elif options.command == "run":
        run_groups(options.groups)
    elif options.command == "cell":
        run_cell(options.group, options.recipe, options.seed)
    else:
        print(table(options.groups))


if __name__ == "__main__":
    sys.exit(guard(main))
