"""SIGKILL en cualquier instante: siempre hay un artefacto que se verifica y lo que sobra se barre."""

import os
import random
import signal
import time
from itertools import count
from pathlib import Path

import pytest

from enlace.durable import latest, lock, publish, remove, sweep, verify
from enlace.errors import LockedError

from .disks import KillingDisk
from .forks import IGNORE_FORK_WARNING, start_child, wait_for

pytestmark = pytest.mark.filterwarnings(IGNORE_FORK_WARNING)
FILES = {"model.bin": b"pesos" * 100, "state.json": b"{}"}


def test_killed_before_any_verb_leaves_a_verifiable_artifact(tmp_path: Path) -> None:
    killed = 0
    for nth in count(1):
        folder = tmp_path / str(nth)
        publish(folder / "step-1", FILES, kind="checkpoint")

        def replace(folder: Path = folder, nth: int = nth) -> None:
            disk = KillingDisk(nth)
            publish(folder / "step-2", FILES, kind="checkpoint", disk=disk)
            remove(folder / "step-1", disk=disk)

        status = wait_for(start_child(replace))
        newest, rejected = latest(folder, "step", "checkpoint")
        assert newest is not None and rejected == []
        sweep(folder)
        assert {place.name for place in folder.iterdir()} <= {"step-1", "step-2"}
        if status == 0:
            break
        assert status == -signal.SIGKILL
        killed += 1
    assert killed == 19  # publicar tiene 13 verbos y borrar 6: se ha muerto antes de cada uno


def test_killed_at_random_instants_never_loses_what_was_acknowledged(tmp_path: Path) -> None:
    folder = tmp_path / "checkpoints"
    folder.mkdir()
    rng = random.Random(20240607)
    number = 0
    for _ in range(40):
        reader, writer = os.pipe()

        def save_for_ever(first: int = number + 1, writer: int = writer) -> None:
            for step in count(first):
                publish(folder / f"step-{step}", {"model.bin": os.urandom(60_000)}, kind="checkpoint")
                os.write(writer, f"{step}\n".encode())
                if (folder / f"step-{step - 2}").exists():
                    remove(folder / f"step-{step - 2}")

        child = start_child(save_for_ever)
        os.close(writer)
        first = os.read(reader, 64)
        time.sleep(rng.uniform(0, 0.04))
        os.kill(child, signal.SIGKILL)
        assert wait_for(child) == -signal.SIGKILL
        with os.fdopen(reader) as pipe:
            acknowledged = max(map(int, (first.decode() + pipe.read()).split()))
        sweep(folder)
        newest, rejected = latest(folder, "step", "checkpoint")
        assert rejected == [] and not [place for place in folder.iterdir() if place.name.startswith(".")]
        assert newest is not None
        number = int(newest.name.removeprefix("step-"))
        assert number >= acknowledged


def test_sweep_spares_what_another_live_process_is_writing(tmp_path: Path) -> None:
    ready_reader, ready_writer = os.pipe()
    go_reader, go_writer = os.pipe()

    def publish_slowly() -> None:
        def chunks() -> "list[bytes]":
            os.write(ready_writer, b"x")
            os.read(go_reader, 1)
            return [b"entero"]

        publish(tmp_path / "step-1", {"model.bin": (chunk for chunk in chunks())}, kind="checkpoint")

    child = start_child(publish_slowly)
    os.read(ready_reader, 1)
    assert sweep(tmp_path) == []
    os.write(go_writer, b"x")
    assert wait_for(child) == 0
    verify(tmp_path / "step-1", "checkpoint")
    for descriptor in (ready_reader, ready_writer, go_reader, go_writer):
        os.close(descriptor)


def test_second_process_is_refused_and_killed_holder_recovers(tmp_path: Path) -> None:
    path = tmp_path / "run.lock"
    reader, writer = os.pipe()

    def hold() -> None:
        with lock(path):
            os.write(writer, b"x")
            signal.pause()

    child = start_child(hold)
    os.read(reader, 1)
    with pytest.raises(LockedError) as refused, lock(path):
        pass
    assert str(child) in refused.value.what and os.uname().nodename in refused.value.what
    os.kill(child, signal.SIGKILL)
    wait_for(child)
    with lock(path):
        pass
    os.close(reader)
    os.close(writer)


def test_children_of_a_killed_holder_do_not_keep_the_lock(tmp_path: Path) -> None:
    path = tmp_path / "run.lock"
    reader, writer = os.pipe()

    def hold_and_have_a_child() -> None:
        with lock(path):
            grandchild = start_child(signal.pause)
            os.write(writer, f"{grandchild}\n".encode())
            signal.pause()

    child = start_child(hold_and_have_a_child)
    grandchild = int(os.read(reader, 16))
    os.kill(child, signal.SIGKILL)
    wait_for(child)
    try:
        with lock(path):
            os.kill(grandchild, 0)  # el nieto sigue vivo, y aun así el cerrojo está libre
    finally:
        os.kill(grandchild, signal.SIGKILL)
        os.close(reader)
        os.close(writer)
