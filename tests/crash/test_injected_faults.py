"""Cada llamada al sistema de un guardado falla, o es la última del proceso: error claro, nada perdido y se sigue.

Como en SQLite: la llamada número n falla, n = 1, 2…, hasta que una pasada termina sin que falle ninguna.
"""

import re
import signal
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
import torch

from enlace.config.schema import Run
from enlace.durable import latest
from enlace.errors import CorruptDataError
from enlace.train.checkpoint import PREFIX
from enlace.train.state import KIND
from enlace.train.train import train
from tests.test_resume import exact_state, make_run

from .forks import IGNORE_FORK_WARNING
from .injection import CALLS, Outcome, inject, record, require_strace
from .saver import check, save_next

pytestmark = [pytest.mark.filterwarnings(IGNORE_FORK_WARNING), pytest.mark.timeout(7200)]
KILL = "signal=KILL"
# Los dos últimos, solo en la pasada larga.
EFFECTS = ["error=ENOSPC", "error=EIO", KILL, "error=EDQUOT", "error=EROFS"]
EXIT_CODES = {"ENOSPC": 8, "EDQUOT": 8, "EIO": 1, "EROFS": 1}


@dataclass(frozen=True)
class Whole:
    """Una corrida sin fallos: cómo acaba y las llamadas de disco que hizo."""

    state: dict[str, Any]
    calls: list[str]
    run_dir: str

    def numbers(self, call: str) -> list[int]:
        """Qué números de esa llamada tocan la carpeta de la corrida; las demás leen los datos o el sistema."""
        made = [line for line in self.calls if re.search(rf"^\d+ +{call}", line)]
        return [number for number, line in enumerate(made, start=1) if self.run_dir in line]


@pytest.fixture(autouse=True)
def strace() -> None:
    require_strace()
    # Con un hilo no hay hilos de OpenMP que un fork dejaría a medias.
    torch.set_num_threads(1)


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    """En memoria donde se pueda: las llamadas son las mismas y fsync no espera a ningún disco."""
    memory = Path("/dev/shm")  # noqa: S108
    with TemporaryDirectory(dir=memory if memory.is_dir() else tmp_path) as name:
        yield Path(name)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Whole:
    root = tmp_path_factory.mktemp("entera")
    # La primera corrida de un proceso abre lo que torch carga tarde: las llamadas se cuentan en la segunda.
    _train(make_run(root, "previa"))
    run = make_run(root, "entera")
    calls = record(lambda: _train(run), root)
    return Whole(exact_state(run), calls, f"{run.runs_dir}/{run.name}")


def _train(run: Run) -> None:
    train(run, resume="auto")


def check_outcome(outcome: Outcome, effect: str) -> None:
    """Muerto por la señal, o el error en español con el nombre del fallo y su código de salida."""
    assert outcome.hit is not None, outcome
    if effect == KILL:
        assert outcome.code == -signal.SIGKILL
        return
    name = effect.removeprefix("error=")
    assert re.search("^error: ", outcome.said, re.MULTILINE) and name in outcome.said, outcome
    assert "fallo inesperado" not in outcome.said and "Traceback" not in outcome.said, outcome
    # Al abrir para leer, lo que el disco no devuelve puede ser un dato dañado.
    reading = "openat" in outcome.hit and "O_CREAT" not in outcome.hit
    assert outcome.code in ({EXIT_CODES[name], CorruptDataError.exit_code} if reading else {EXIT_CODES[name]}), outcome


@pytest.mark.parametrize("asynchronous", [False, True])
@pytest.mark.parametrize("call", CALLS)
def test_every_call_of_a_save_may_fail_and_nothing_is_lost(
    call: str, asynchronous: bool, folder: Path, long_run: bool
) -> None:
    effects = EFFECTS if long_run else [KILL] if asynchronous else EFFECTS[:3]
    for effect in effects:
        assert fail_one_by_one(call, effect, asynchronous, folder / effect) > 0


def fail_one_by_one(call: str, effect: str, asynchronous: bool, root: Path) -> int:
    """Cuántas llamadas han fallado, cada una en un guardado distinto, hasta que uno termina sin que falle ninguna."""
    for nth in count(1):
        folder = root / str(nth)
        save_next(folder)
        outcome = inject(lambda folder=folder: save_next(folder, asynchronous=asynchronous), call, effect, nth, root)
        unfinished = [place.name for place in folder.rglob(".tmp-*")]
        assert check(folder) >= 1
        if outcome.hit is None:
            assert outcome.code == 0, outcome.said
            return nth - 1
        check_outcome(outcome, effect)
        assert effect == KILL or unfinished == [], outcome
        save_next(folder)
        assert check(folder) >= 2
    raise AssertionError


@pytest.mark.parametrize("call", CALLS)
def test_a_training_with_a_failed_call_resumes_to_the_same_end(
    call: str, whole: Whole, folder: Path, long_run: bool
) -> None:
    targets = whole.numbers(call)
    # En la pasada larga, todas, o unas cien repartidas donde hay más (las escrituras de tensores son iguales).
    chosen = targets[:: max(1, len(targets) // 100)] if long_run else [targets[len(targets) // 2]]
    for nth in chosen:
        for effect in EFFECTS[:3] if long_run else [EFFECTS[list(CALLS).index(call) % 3]]:
            run = make_run(folder, f"cortada-{nth}-{EFFECTS.index(effect)}")
            Path(run.runs_dir).mkdir(exist_ok=True)
            outcome = inject(lambda run=run: _train(run), call, effect, nth, folder)
            check_outcome(outcome, effect)
            assert latest(Path(run.runs_dir) / run.name / "checkpoints", PREFIX, KIND)[1] == []
            _train(run)
            assert exact_state(run) == whole.state, outcome
