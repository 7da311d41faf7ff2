"""Cortes de luz en un ext4 de verdad: lo dado por guardado está, entero, al volver a montar."""

import os
import random
import signal
import time
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from enlace.durable import Disk, publish, verify
from enlace.errors import EnlaceError

from .forks import IGNORE_FORK_WARNING, start_child, wait_for
from .mounts import ImageDisk, image_disk
from .saver import check, save_next

pytestmark = [pytest.mark.filterwarnings(IGNORE_FORK_WARNING), pytest.mark.timeout(1200)]
VERBS = [name for name in vars(Disk) if not name.startswith("_")]


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[ImageDisk]:
    with image_disk(tmp_path) as disk:
        yield disk


def stop_before_verb(nth: int) -> None:
    """Desde ahora, este proceso se para antes de su operación de disco número `nth`."""
    done = count(1)

    def stopping(verb: Callable[..., Any]) -> Callable[..., Any]:
        def wrapped(*arguments: Any) -> Any:
            if next(done) == nth:
                os.kill(os.getpid(), signal.SIGSTOP)
            return verb(*arguments)

        return wrapped

    for name in VERBS:
        setattr(Disk, name, stopping(getattr(Disk, name)))


def test_cut_before_every_disk_operation_of_a_save(disk: ImageDisk, long_run: bool) -> None:
    folder, cuts = disk.folder / "corrida", 0
    save_next(folder)
    for nth in count(1, 1 if long_run else 4):
        acknowledged = check(folder)

        def save(nth: int = nth) -> None:
            stop_before_verb(nth)
            save_next(folder)

        child = start_child(save)
        _, status = os.waitpid(child, os.WUNTRACED)
        if os.WIFEXITED(status):
            assert os.WEXITSTATUS(status) == 0
            break
        with disk.after_power_cut() as found:
            os.kill(child, signal.SIGKILL)
            wait_for(child)
            assert check(found / "corrida") >= acknowledged
            save_next(found / "corrida")
        cuts += 1
    assert cuts >= (40 if long_run else 10)


def test_cut_at_random_instants_with_others_writing(disk: ImageDisk, long_run: bool) -> None:
    folder, dice = disk.folder / "corrida", random.Random(7)
    save_next(folder)
    for _ in range(150 if long_run else 8):
        reader, writer = os.pipe()

        def save_for_ever(writer: int = writer) -> None:
            while True:
                save_next(folder)
                os.write(writer, b"x")

        acknowledged = check(folder)
        children = [start_child(save_for_ever), start_child(lambda: write_for_ever(disk.folder / "otro"))]
        os.close(writer)
        os.read(reader, 1)
        time.sleep(dice.uniform(0, 0.05))
        for child in children:
            os.kill(child, signal.SIGSTOP)
            os.waitpid(child, os.WUNTRACED)
        os.set_blocking(reader, False)
        acknowledged += 1 + len(_read_all(reader))
        with disk.after_power_cut() as found:
            for child in children:
                os.kill(child, signal.SIGKILL)
                assert wait_for(child) == -signal.SIGKILL
            assert check(found / "corrida") >= acknowledged
            save_next(found / "corrida")
        os.close(reader)


def _read_all(reader: int) -> bytes:
    try:
        return os.read(reader, 65536)
    except BlockingIOError:
        return b""


def write_for_ever(path: Path) -> None:
    """Otro programa: sus fsync mandan al disco, a destiempo, lo que nosotros llevamos a medias."""
    for number in count():
        with path.open("wb") as file:
            file.write(os.urandom(20_000))
            file.flush()
            os.fsync(file.fileno())
        path.rename(path.with_suffix(f".{number % 3}"))


@pytest.mark.parametrize("forgotten", [None, "fsync", "fsync_dir"])
def test_the_cut_catches_a_protocol_that_forgets_a_sync(
    forgotten: str | None, disk: ImageDisk, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        if forgotten:
            patch.setattr(Disk, forgotten, lambda self, file: None)
        publish(disk.folder / "step-1", {"model.safetensors": bytes(50_000)}, kind="checkpoint")
    with disk.after_power_cut() as found:
        if forgotten:
            with pytest.raises(EnlaceError):
                verify(found / "step-1")
        else:
            verify(found / "step-1")
