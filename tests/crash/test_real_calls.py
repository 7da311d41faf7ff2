"""Lo que un entrenamiento hace de verdad en el disco, llamada a llamada: lo que da por guardado está a salvo entero.

power_cut.py recorre los verbos de Disk; aquí entra también lo que se escriba por fuera de él.
"""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

from enlace.train.train import train
from tests.test_resume import make_run

from .forks import IGNORE_FORK_WARNING
from .injection import record, require_strace

pytestmark = pytest.mark.filterwarnings(IGNORE_FORK_WARNING)
CALL = re.compile(r"\d+ +(\w+)\((.*)\) += \d+")
ARTIFACT = re.compile(r"step-\d+|model")
PLACE = re.compile(r'^\d+<([^>]*)>|"([^"]*)"')


class Safe:
    """Qué nombres y qué contenidos sobrevivirían a un corte: solo los que ha confirmado un fsync."""

    def __init__(self) -> None:
        self.loose: set[Path] = set()  # nombres nuevos cuya carpeta no se ha sincronizado
        self.dirty: set[Path] = set()  # ficheros con algo sin sincronizar

    def rename(self, old: Path, new: Path) -> None:
        for places in (self.loose, self.dirty):
            moved = {place for place in places if place.is_relative_to(old)}
            places -= moved
            places |= {new / place.relative_to(old) for place in moved}
        self.loose.add(new)

    def sync(self, path: Path) -> None:
        self.dirty.discard(path)
        self.loose -= {place for place in self.loose if place.parent == path}

    def lost_with(self, path: Path) -> set[Path]:
        """Lo que un corte haría perder de `path`: él, lo que cuelga de él o una carpeta de encima."""
        return {place for place in self.loose | self.dirty if place.is_relative_to(path) or path.is_relative_to(place)}


def acknowledged(lines: list[str], run_dir: Path) -> Iterator[tuple[str, set[Path]]]:
    """Cada artefacto en el momento en que se da por guardado, con lo que un corte haría perder de él o del registro."""
    safe = Safe()
    for line in lines:
        call = CALL.match(line)
        places = [Path(opened or named) for opened, named in PLACE.findall(call[2])] if call else []
        if call is None or not places or not places[0].is_relative_to(run_dir.parent.parent):
            continue
        name, path = call[1], places[0]
        if name.startswith("mkdir") or "O_CREAT" in call[2]:
            safe.loose.add(path)
        elif name == "write":
            safe.dirty.add(path)
        elif name.startswith("rename"):
            safe.rename(path, places[1])
        elif name == "fsync":
            put = [place for place in safe.loose if place.parent == path and ARTIFACT.fullmatch(place.name)]
            safe.sync(path)
            for place in put:
                yield place.name, safe.lost_with(place) | safe.lost_with(run_dir / "log.jsonl")


def test_an_acknowledged_checkpoint_depends_on_nothing_a_power_cut_may_lose(tmp_path: Path) -> None:
    require_strace()
    torch.set_num_threads(1)
    run = make_run(tmp_path, "anotada", train__checkpoints__keep_last=99)
    found = dict(acknowledged(record(lambda: train(run), tmp_path), Path(run.runs_dir) / run.name))
    assert found == {name: set() for name in ["model", *(f"step-{step:08d}" for step in (3, 6, 9, 12, 15, 16))]}
