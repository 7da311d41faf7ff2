"""Qué puntos de control quedan, y que un disco lleno no se lleva el último bueno."""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from enlace.durable import Disk, latest, read_json, verify
from enlace.errors import CorruptDataError, ResourceError
from enlace.train.checkpoint import CheckpointWriter, checkpoint_step, list_checkpoints, prune
from enlace.train.train import train
from tests.tiny import tiny_run


def steps_left(root: Path, **changes: Any) -> list[int]:
    run = tiny_run(root, **changes)
    assert train(run)
    return [checkpoint_step(path) for path in list_checkpoints(Path(run.runs_dir) / run.name / "checkpoints")]


def test_the_last_ones_are_kept(tmp_path: Path) -> None:
    assert steps_left(tmp_path, train__checkpoints__keep_last=2) == [9, 12]


def test_keeping_one_keeps_the_newest(tmp_path: Path) -> None:
    assert steps_left(tmp_path, train__checkpoints__keep_last=1) == [12]


def test_named_steps_are_written_and_kept(tmp_path: Path) -> None:
    changes = {"train__checkpoints__keep_last": 1, "train__checkpoints__keep_steps": [4]}
    assert steps_left(tmp_path, **changes) == [4, 12]


def test_the_best_by_validation_is_kept(tmp_path: Path) -> None:
    # Con una tasa absurda desde el principio, el mejor es el primero que se guarda.
    changes = {
        "train__checkpoints__keep_last": 1,
        "train__checkpoints__keep_best": True,
        "train__optimizer__learning_rate": 3.0,
        "train__schedule__decay_steps": 0,
    }
    left = steps_left(tmp_path, **changes)
    run_dir = tmp_path / "runs" / "diminuta"
    best = read_json(run_dir / "checkpoints" / f"step-{12:08d}" / "state.json")
    assert isinstance(best, dict)
    assert left == sorted({best["counters"]["best"]["step"], 12})  # type: ignore[index,call-overload]


def test_a_copy_beside_with_another_name_is_neither_counted_nor_deleted(tmp_path: Path) -> None:
    run = tiny_run(tmp_path, train__checkpoints__keep_last=1)
    assert train(run)
    folder = Path(run.runs_dir) / run.name / "checkpoints"
    copy = shutil.copytree(folder / "step-00000012", folder / "step-00000012-copia")
    longer = tiny_run(tmp_path, train__steps=15, train__checkpoints__keep_last=1, train__schedule__decay_steps=0)
    assert train(longer, resume="auto")
    assert copy.is_dir()
    assert [checkpoint_step(path) for path in list_checkpoints(folder)] == [15]


def test_nothing_is_deleted_if_the_newest_is_damaged(tmp_path: Path) -> None:
    run = tiny_run(tmp_path, train__checkpoints__keep_last=99)
    assert train(run)
    folder = Path(run.runs_dir) / run.name / "checkpoints"
    (list_checkpoints(folder)[-1] / "model.safetensors").write_bytes(b"")
    before = list_checkpoints(folder)
    with pytest.raises(CorruptDataError):
        prune(folder, run.train.checkpoints.model_copy(update={"keep_last": 1}))
    assert list_checkpoints(folder) == before


def test_a_failure_in_the_writing_thread_is_raised_not_lost(tmp_path: Path) -> None:
    policy = tiny_run(tmp_path).train.checkpoints.model_copy(update={"asynchronous": True})
    writer = CheckpointWriter(tmp_path / "checkpoints", policy)

    def broken() -> Iterator[bytes]:
        yield b"principio"
        raise OSError(28, "No space left on device")

    writer.save(1, {"model.safetensors": broken()}, {})
    with pytest.raises(ResourceError):
        writer.wait()
    assert list_checkpoints(tmp_path / "checkpoints") == []


@pytest.mark.parametrize("asynchronous", [False, True])
def test_a_disk_that_fills_up_leaves_the_previous_checkpoint_and_says_so(
    asynchronous: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = tiny_run(tmp_path, train__checkpoints__asynchronous=asynchronous)
    real, full = Disk.write, False

    def write(self: Disk, file: Any, data: Any) -> None:
        if full and "checkpoints" in str(file.name):
            raise OSError(28, "No space left on device")
        real(self, file, data)

    def rename(self: Disk, source: Path, target: Path) -> None:
        nonlocal full
        real_rename(self, source, target)
        full = full or target.name == "step-00000006"

    real_rename = Disk.rename
    monkeypatch.setattr(Disk, "write", write)
    monkeypatch.setattr(Disk, "rename", rename)
    with pytest.raises(ResourceError) as caught:
        train(run)
    assert caught.value.exit_code == 8
    folder = Path(run.runs_dir) / run.name / "checkpoints"
    assert verify(folder / "step-00000006", "checkpoint")
    assert {path.name for path in folder.iterdir()} == {"step-00000003", "step-00000006"}


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """Un disco de verdad, de 6 MB, en memoria."""
    folder = tmp_path / "disco"
    folder.mkdir()
    mount = shutil.which("mount")
    command = [mount or "mount", "-t", "tmpfs", "-o", "size=6m", "tmpfs", str(folder)]
    if mount is None or os.geteuid() != 0 or subprocess.run(command, capture_output=True).returncode:
        pytest.skip("NECESITA root y mount: no se ha probado con un disco lleno de verdad")
    yield folder
    subprocess.run(["umount", str(folder)], check=True)


def test_a_really_full_disk_exits_with_8_and_after_freeing_space_it_goes_on(small_disk: Path, tmp_path: Path) -> None:
    run = tiny_run(tmp_path, runs_dir=str(small_disk / "runs"), train__steps=300, train__checkpoints__keep_last=1)
    config = tmp_path / "corrida.yaml"
    config.write_text(run.model_dump_json())
    command = [sys.executable, "-m", "enlace.train.train", str(config), "--resume", "auto"]
    ballast = small_disk / "lastre"
    folder = small_disk / "runs" / run.name / "checkpoints"
    with (tmp_path / "salida").open("w") as output, subprocess.Popen(command, stderr=output) as process:
        while process.poll() is None and not ballast.exists():
            if list_checkpoints(folder):
                fill(ballast)
        code = process.wait()
    message = (tmp_path / "salida").read_text()
    assert code == 8, message
    assert "espacio" in message and "Traceback" not in message
    ballast.unlink()
    good, rejected = latest(folder, "step", "checkpoint")
    assert good is not None and not rejected
    assert subprocess.run(command, capture_output=True).returncode == 0


def fill(ballast: Path) -> None:
    """Llena el disco en el que está el fichero."""
    with ballast.open("wb", buffering=0) as file:
        try:
            while True:
                file.write(b"\0" * 65536)
        except OSError:
            return
