"""La prueba crítica: interrumpida y reanudada es igual, bit a bit, que nunca interrumpida.

Cada corrida se mata con SIGKILL en instantes al azar (y en cada operación de disco de un punto de control) hasta
que acaba; después se comparan pesos, optimizador, generadores, contadores, escalador y registro con los de la
misma corrida sin cortes. torch se importa una vez y cada intento es un `fork`.
"""

import json
import os
import random
import re
import shutil
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from enlace.config.schema import Run
from enlace.data import write_shard_set
from enlace.durable import Disk, read_json, read_log, verify
from enlace.errors import ConfigError, CorruptDataError, LockedError, UsageError
from enlace.tokenizer import ByteTokenizer
from enlace.train.checkpoint import list_checkpoints
from enlace.train.train import train
from tests.crash.forks import start_child, wait_for
from tests.tiny import tiny_run, write_documents

KILLS = 20
LONG_KILLS = 200
STEPS = 16
MUON = {"momentum": 0.95, "ns_steps": 5}

VARIANTS: dict[str, dict[str, Any]] = {
    "sincrona": {},
    "acumulacion-4-asincrona": {"hardware__micro_batch_tokens": 32, "train__checkpoints__asynchronous": True},
    "dropout": {"train__dropout": 0.2, "train__checkpoints__asynchronous": True},
    "shards": {"shards": True},
    "shards-acumulacion-4-asincrona": {
        "shards": True,
        "hardware__micro_batch_tokens": 32,
        "train__checkpoints__asynchronous": True,
    },
    "muon": {"train__optimizer__muon": MUON, "train__checkpoints__asynchronous": True},
    "float16-escalado": {"hardware__dtype": "float16", "hardware__grad_scaler": True},
    "float16-escalado-muon": {
        "hardware__dtype": "float16",
        "hardware__grad_scaler": True,
        "train__optimizer__muon": MUON,
    },
    "coseno-y-pesos-sueltos": {"train__schedule__kind": "cosine", "model__tie_embeddings": False},
}
EXACT_FILES = ("model.safetensors", "optimizer.safetensors", "rng.safetensors")


@pytest.fixture(autouse=True)
def one_thread() -> None:
    # Con un hilo no hay hilos de OpenMP que un fork dejaría a medias.
    torch.set_num_threads(1)


@pytest.fixture(autouse=True, scope="module")
def warm(tmp_path_factory: pytest.TempPathFactory) -> None:
    """La primera corrida de un proceso paga lo que torch carga tarde; con eso en la cuenta, casi nadie moriría."""
    assert train(tiny_run(tmp_path_factory.mktemp("previa"), train__steps=6))


def fork_child(action: Callable[[], object], log: Path) -> int:
    """Ejecuta la acción en un hijo, con su salida en `log`, y devuelve su pid."""

    def logged() -> None:
        with log.open("ab") as file:
            os.dup2(file.fileno(), sys.stdout.fileno())
            os.dup2(file.fileno(), sys.stderr.fileno())
        action()

    return start_child(logged)


def run_forked(action: Callable[[], object], log: Path, *, kill_after: float | None = None) -> int:
    """Ejecuta la acción en un hijo y, pasado ese tiempo, lo mata con SIGKILL; su código, o la señal en negativo."""
    child = fork_child(action, log)
    if kill_after is not None:
        time.sleep(kill_after)
        os.kill(child, signal.SIGKILL)
    return wait_for(child)


def run_until_done(run: Run, log: Path, next_kill: Callable[[], float]) -> int:
    """Entrena reanudando y matando hasta que termina (al cabo de KILLS muertes, se le deja); cuántas veces murió."""
    for kills in range(KILLS):
        code = run_forked(lambda: train(run, resume="auto"), log, kill_after=next_kill())
        if code == 0:
            return kills
        assert code == -signal.SIGKILL, log.read_text()
    assert run_forked(lambda: train(run, resume="auto"), log) == 0, log.read_text()
    return KILLS


def exact_state(run: Run) -> dict[str, Any]:
    """Todo lo que tiene que coincidir al bit entre dos corridas."""
    run_dir = Path(run.runs_dir) / run.name
    last = run_dir / "checkpoints" / f"step-{run.train.steps:08d}"
    manifest = verify(last, "checkpoint")
    state = read_json(last / "state.json")
    assert isinstance(state, dict)
    counters = dict(state["counters"])
    counters.pop("seconds")
    log = [{key: value for key, value in line.items() if key != "timing"} for line in read_log(run_dir / "log.jsonl")]
    return {
        "files": {name: manifest.files[name].sha256 for name in EXACT_FILES},
        "counters": counters,
        "scaler": state["scaler"],
        "host_rng": state["host_rng"],
        "validation": state["validation"],
        "log": json.dumps(log),
        "model": verify(run_dir / "model", "model").files["model.safetensors"].sha256,
    }


def shards_source(root: Path) -> Path:
    """Los mismos textos, ya tokenizados en shards (una vez por carpeta)."""
    target = root / "shards"
    if target.exists():
        return target
    tokenizer = ByteTokenizer()
    texts = [json.loads(line)["text"] for line in write_documents(root / "texto").read_text().splitlines()]
    splits = {"train": texts[10:], "validation": texts[:10]}
    write_shard_set(
        target,
        {name: [tokenizer.encode(text) for text in part] for name, part in splits.items()},
        tokenizer_sha256=tokenizer.sha256,
        end_of_text=tokenizer.end_of_text,
        shard_tokens=4096,
        text_bytes={name: sum(len(text.encode()) for text in part) for name, part in splits.items()},
    )
    return target


def make_run(root: Path, name: str, *, shards: bool = False, **changes: Any) -> Run:
    if shards:
        sources = [{"name": "propio", "path": str(shards_source(root)), "weight": 1.0}]
        changes |= {"data__kind": "shards", "data__sources": sources}
    return tiny_run(root, name=name, **{"train__steps": STEPS, **changes})


def reference(run: Run) -> tuple[dict[str, Any], float]:
    """La misma corrida sin cortes, y lo que tardó."""
    start = time.perf_counter()
    assert train(run)
    return exact_state(run), time.perf_counter() - start


@pytest.mark.timeout(3600)  # con --long son 200 muertes por variante
@pytest.mark.parametrize("variant", VARIANTS)
def test_killed_at_random_instants_and_resumed_equals_never_interrupted(
    variant: str, tmp_path: Path, long_run: bool
) -> None:
    changes = VARIANTS[variant]
    expected, seconds = reference(make_run(tmp_path, "entera", **changes))
    dice, kills, attempt = random.Random(variant), 0, 0
    while kills < (LONG_KILLS if long_run else KILLS):
        attempt += 1
        run = make_run(tmp_path, f"cortada-{attempt}", **changes)
        kills += run_until_done(run, tmp_path / "hijo.log", lambda: dice.uniform(0, seconds))
        assert exact_state(run) == expected


VERBS = [name for name in vars(Disk) if not name.startswith("_")]


def die_at_operation(fatal: int) -> None:
    """Desde ahora, este proceso muere con SIGKILL justo antes de su operación de disco número `fatal`."""
    done = 0

    def mortal(verb: Callable[..., Any]) -> Callable[..., Any]:
        def wrapped(*arguments: Any) -> Any:
            nonlocal done
            done += 1
            if done == fatal:
                os.kill(os.getpid(), signal.SIGKILL)
            return verb(*arguments)

        return wrapped

    for name in VERBS:
        setattr(Disk, name, mortal(getattr(Disk, name)))


@pytest.mark.timeout(3600)
@pytest.mark.parametrize("asynchronous", [False, True])
def test_killed_inside_checkpoint_writes_and_resumed_equals_never_interrupted(
    asynchronous: bool, tmp_path: Path, long_run: bool
) -> None:
    changes: dict[str, Any] = {"train__checkpoints__asynchronous": asynchronous, "train__dropout": 0.1}
    expected, _ = reference(make_run(tmp_path, "entera", **changes))
    # Una corrida son unas 600 operaciones de disco y un punto de control, unas 40: saltos de 37 recorren sus fases.
    for fatal in range(3, 600, 1 if long_run else 37):
        run = make_run(tmp_path, f"cortada-{fatal}", **changes)

        def mortal_training(run: Run = run, fatal: int = fatal) -> None:
            die_at_operation(fatal)
            train(run, resume="auto")

        code = run_forked(mortal_training, tmp_path / "hijo.log")
        assert code in (-signal.SIGKILL, 0), (tmp_path / "hijo.log").read_text()
        assert run_forked(lambda run=run: train(run, resume="auto"), tmp_path / "hijo.log") == 0
        assert exact_state(run) == expected


def wait_for_lines(path: Path, count: int) -> None:
    deadline = time.monotonic() + 60
    while not (path.exists() and path.read_bytes().count(b"\n") >= count):
        assert time.monotonic() < deadline, "el hijo no avanza"
        time.sleep(0.002)


def test_sigterm_finishes_the_step_saves_and_the_rest_is_exact(tmp_path: Path) -> None:
    changes = {"train__checkpoints__every": 1000}
    expected, _ = reference(make_run(tmp_path, "entera", **changes))
    run = make_run(tmp_path, "parada", **changes)
    run_dir = Path(run.runs_dir) / run.name
    child = fork_child(lambda: train(run), tmp_path / "hijo.log")
    wait_for_lines(run_dir / "log.jsonl", 4)
    os.kill(child, signal.SIGTERM)
    assert wait_for(child) == 0, (tmp_path / "hijo.log").read_text()
    steps = len(read_log(run_dir / "log.jsonl"))
    assert 4 <= steps < STEPS, "la parada no cayó a mitad de la corrida"
    assert [path.name for path in list_checkpoints(run_dir / "checkpoints")] == [f"step-{steps:08d}"]
    assert train(run, resume="auto")
    assert exact_state(run) == expected


def flip_byte(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)


@pytest.mark.parametrize("victim", [*EXACT_FILES, "state.json", "manifest.json"])
def test_auto_falls_back_to_the_newest_valid_checkpoint_and_says_so(
    victim: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    expected, _ = reference(make_run(tmp_path, "entera"))
    run = make_run(tmp_path, "danada")
    assert train(run)
    checkpoints = Path(run.runs_dir) / run.name / "checkpoints"
    newest = list_checkpoints(checkpoints)[-1]
    flip_byte(newest / victim)
    capsys.readouterr()
    assert train(run, resume="auto")
    warning = capsys.readouterr().err
    assert newest.name in warning and victim in warning
    assert (checkpoints / f"corrupto-{newest.name}").is_dir()
    assert exact_state(run) == expected


def test_an_explicit_damaged_checkpoint_is_refused_naming_the_file(tmp_path: Path) -> None:
    run = make_run(tmp_path, "danada")
    assert train(run)
    newest = list_checkpoints(Path(run.runs_dir) / run.name / "checkpoints")[-1]
    flip_byte(newest / "optimizer.safetensors")
    with pytest.raises(CorruptDataError) as caught:
        train(run, resume=str(newest))
    assert "optimizer.safetensors" in caught.value.where


def test_starting_over_an_existing_run_is_refused(tmp_path: Path) -> None:
    run = make_run(tmp_path, "repetida")
    assert train(run)
    with pytest.raises(UsageError, match="ya tiene"):
        train(run)


FORBIDDEN: dict[str, tuple[dict[str, Any], str, str]] = {
    "modelo": ({"model__d_ff": 128}, "config.model.d_ff", "antes 64, ahora 128"),
    "cabeza": ({"model__tie_embeddings": False}, "config.model.tie_embeddings", "antes true, ahora false"),
    "semilla": ({"train__seed": 8}, "config.train.seed", "antes 7, ahora 8"),
    "lote": ({"train__batch_size": 8}, "config.train.batch_size", "antes 4, ahora 8"),
    "horario": ({"train__schedule__kind": "cosine"}, "config.train.schedule.kind", 'antes "wsd", ahora "cosine"'),
    "tasa": (
        {"train__optimizer__learning_rate": 1e-3},
        "config.train.optimizer.learning_rate",
        "antes 0.003, ahora 0.001",
    ),
}


@pytest.mark.parametrize("case", FORBIDDEN)
def test_forbidden_changes_are_refused_with_the_difference(case: str, tmp_path: Path) -> None:
    changes, key, difference = FORBIDDEN[case]
    assert train(make_run(tmp_path, "cambiada"))
    with pytest.raises(ConfigError) as caught:
        train(make_run(tmp_path, "cambiada", **changes), resume="auto")
    assert [problem.key for problem in caught.value.problems] == [key]
    assert difference in caught.value.why


def test_changed_data_is_refused_even_if_the_path_is_the_same(tmp_path: Path) -> None:
    run = make_run(tmp_path, "cambiada")
    assert train(run)
    documents = tmp_path / "texto" / "documentos.jsonl"
    documents.write_text(documents.read_text().replace("gato", "perro"))
    with pytest.raises(ConfigError) as caught:
        train(run, resume="auto")
    assert [problem.key for problem in caught.value.problems] == ["data.propio"]


def test_moved_data_with_the_same_content_is_accepted(tmp_path: Path) -> None:
    assert train(make_run(tmp_path, "movida"))
    documents = tmp_path / "texto" / "documentos.jsonl"
    moved = documents.rename(tmp_path / "otro.jsonl")
    sources = [{"name": "propio", "path": str(moved), "weight": 1.0}]
    write_documents(tmp_path / "texto", count=3)
    assert train(make_run(tmp_path, "movida", data__sources=sources), resume="auto")


def test_more_steps_continue_the_same_plateau(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Con wsd, alargar la corrida desde la meseta es exacto: la meseta no depende del final."""
    flat = {"train__schedule__decay_steps": 0}
    expected, _ = reference(make_run(tmp_path, "larga", **flat, train__steps=STEPS))
    assert train(tiny_run(tmp_path, name="corta", train__steps=STEPS // 2, **flat))
    run = make_run(tmp_path, "corta", **flat)
    capsys.readouterr()
    assert train(run, resume="auto")
    assert "la tasa salta" not in capsys.readouterr().err
    assert exact_state(run)["files"] == expected["files"]


@pytest.mark.parametrize("kind", ["cosine", "wsd"])
def test_more_steps_after_the_plateau_say_how_the_rate_jumps(
    kind: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert train(tiny_run(tmp_path, name="corta", train__steps=8, train__schedule__kind=kind))
    capsys.readouterr()
    assert train(make_run(tmp_path, "corta", train__schedule__kind=kind), resume="auto")
    assert re.search(r"la tasa salta de \d+ % a \d+ % .* paso 8", capsys.readouterr().err)


def test_a_decay_branch_starts_from_any_stable_checkpoint(tmp_path: Path) -> None:
    trunk = make_run(tmp_path, "tronco", train__schedule__decay_steps=0, train__checkpoints__keep_last=99)
    assert train(trunk)
    start = Path(trunk.runs_dir) / "tronco" / "checkpoints" / "step-00000006"
    branch = tiny_run(tmp_path, name="rama", train__steps=10, train__schedule__decay_steps=4)
    assert train(branch, resume=str(start))
    log = read_log(Path(branch.runs_dir) / "rama" / "log.jsonl")
    assert [line["step"] for line in log] == [7, 8, 9, 10]
    rates = [float(str(line["learning_rate"])) for line in log]
    assert rates == pytest.approx([3e-3, 3e-3 * 0.775, 3e-3 * 0.55, 3e-3 * 0.325])


def test_going_back_over_later_checkpoints_is_refused(tmp_path: Path) -> None:
    run = make_run(tmp_path, "atras", train__checkpoints__keep_last=99)
    assert train(run)
    early = list_checkpoints(Path(run.runs_dir) / run.name / "checkpoints")[0]
    with pytest.raises(UsageError, match="posteriores"):
        train(run, resume=str(early))


def test_another_board_or_library_is_accepted_but_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert train(tiny_run(tmp_path, name="mudanza", train__steps=8, train__schedule__decay_steps=0))
    moved = make_run(tmp_path, "mudanza", train__schedule__decay_steps=0, hardware__micro_batch_tokens=32)
    capsys.readouterr()
    assert train(moved, resume="auto")
    warning = capsys.readouterr().err
    assert "no será exacta" in warning and "config.hardware.micro_batch_tokens" in warning


def test_two_trainings_on_one_run_directory_the_second_is_refused(tmp_path: Path) -> None:
    run = make_run(tmp_path, "doble", train__steps=100_000)
    child = fork_child(lambda: train(run), tmp_path / "hijo.log")
    try:
        wait_for_lines(Path(run.runs_dir) / run.name / "log.jsonl", 1)
        with pytest.raises(LockedError, match=str(child)):
            train(run, resume="auto")
    finally:
        os.kill(child, signal.SIGKILL)
        wait_for(child)


def branch_point(root: Path, steps: int) -> str:
    """Un punto de control de otra corrida, ya terminada, del que salir."""
    trunk = make_run(root, "tronco", train__schedule__decay_steps=0, train__checkpoints__keep_last=99)
    assert train(trunk)
    return str(Path(trunk.runs_dir) / "tronco" / "checkpoints" / f"step-{steps:08d}")


def test_a_branch_killed_before_its_first_checkpoint_starts_its_log_again(tmp_path: Path) -> None:
    start = branch_point(tmp_path, 3)
    branch = tiny_run(tmp_path, name="rama", train__checkpoints__every=1000)
    log = Path(branch.runs_dir) / "rama" / "log.jsonl"
    log.parent.mkdir()
    log.write_text('{"step":4}\n{"step":5}\n')
    assert train(branch, resume=start)
    assert [line["step"] for line in read_log(log)] == list(range(4, 13))


def test_a_branch_does_not_start_over_another_that_has_checkpoints(tmp_path: Path) -> None:
    start = branch_point(tmp_path, 3)
    later = start.replace("step-00000003", "step-00000009")
    assert train(tiny_run(tmp_path, name="rama", train__steps=9), resume=start)
    with pytest.raises(UsageError, match="ya tiene"):
        train(tiny_run(tmp_path, name="rama", train__steps=12), resume=later)


def test_a_branch_with_nothing_left_to_train_is_refused(tmp_path: Path) -> None:
    start = branch_point(tmp_path, 12)
    with pytest.raises(UsageError, match="no queda nada que entrenar"):
        train(tiny_run(tmp_path, name="rama", train__steps=12), resume=start)


def test_a_checkpoint_copied_elsewhere_with_another_name_is_a_good_start(tmp_path: Path) -> None:
    copy = shutil.copytree(branch_point(tmp_path, 6), tmp_path / "mi-copia")
    branch = tiny_run(tmp_path, name="rama", train__steps=9)
    assert train(branch, resume=str(copy))
    assert [line["step"] for line in read_log(Path(branch.runs_dir) / "rama" / "log.jsonl")] == [7, 8, 9]


def test_when_every_checkpoint_is_damaged_it_says_it_starts_over(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = make_run(tmp_path, "danada", train__checkpoints__keep_last=1)
    assert train(run)
    expected = exact_state(run)
    for path in list_checkpoints(Path(run.runs_dir) / "danada" / "checkpoints"):
        flip_byte(path / "model.safetensors")
    assert train(run, resume="auto")
    assert "se empieza desde el principio" in capsys.readouterr().err
    assert exact_state(run) == expected
