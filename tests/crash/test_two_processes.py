"""Dos entrenamientos en la misma carpeta: el segundo se rechaza con el pid y la máquina del primero."""

import fcntl
import os
import re
import signal
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import torch

from enlace.config.schema import Run
from enlace.durable import lock
from enlace.errors import EnlaceError, LockedError
from enlace.train.train import train
from tests.test_resume import make_run, wait_for_lines

from .forks import IGNORE_FORK_WARNING, exit_as_a_command, start_child, wait_for
from .injection import inject, require_strace

pytestmark = pytest.mark.filterwarnings(IGNORE_FORK_WARNING)


@pytest.fixture(autouse=True)
def one_thread() -> None:
    # Con un hilo no hay hilos de OpenMP que un fork dejaría a medias.
    torch.set_num_threads(1)


@contextmanager
def training(run: Run, root: Path) -> Iterator[int]:
    """Alguien que ya está entrenando, y acaba muerto con SIGKILL."""
    child = start_child(lambda: exit_as_a_command(lambda: train(run), root / "primero"))
    try:
        wait_for_lines(Path(run.runs_dir) / run.name / "log.jsonl", 4)
        yield child
    finally:
        os.kill(child, signal.SIGKILL)
        assert wait_for(child) == -signal.SIGKILL


def second(run: Run, root: Path) -> tuple[int, str]:
    """El código y lo que dice otro entrenamiento de la misma corrida."""
    output = root / "segundo"
    output.unlink(missing_ok=True)
    code = wait_for(start_child(lambda: exit_as_a_command(lambda: train(run, resume="auto"), output)))
    return code, output.read_text()


def test_the_second_is_refused_with_pid_and_host_and_a_dead_first_does_not_block(tmp_path: Path) -> None:
    run = make_run(tmp_path, "doble", train__steps=100_000, train__schedule__decay_steps=0)
    path = Path(run.runs_dir) / run.name / ".lock"
    with training(run, tmp_path) as first:
        code, said = second(run, tmp_path)
        assert code == 6, said
        assert said.startswith(f"error: lo está usando el proceso {first} en {socket.gethostname()}\n")
        assert re.search(rf"^pista: .* kill {first}$", said, re.MULTILINE)
        with pytest.raises(LockedError), lock(path):
            pass
    with lock(path):
        assert path.read_text() == f"{os.getpid()} {socket.gethostname()}\n"


def test_a_holder_in_another_host_is_named_with_where_to_stop_it(tmp_path: Path) -> None:
    # En un disco de red el núcleo niega el cerrojo que tiene otra máquina, y el fichero dice cuál.
    run = make_run(tmp_path, "remota")
    path = Path(run.runs_dir) / run.name / ".lock"
    path.parent.mkdir(parents=True)
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT)
    fcntl.flock(descriptor, fcntl.LOCK_EX)
    os.write(descriptor, b"4242 la-torre\n")
    start = time.monotonic()
    code, said = second(run, tmp_path)
    assert time.monotonic() - start < 2, "un dueño de otra máquina no se puede dar por muerto: no se espera"
    assert code == 6, said
    assert "el proceso 4242 en la-torre" in said and "ciérralo en la-torre: kill 4242" in said
    os.close(descriptor)
    assert second(run, tmp_path)[0] == 0


@pytest.mark.parametrize("name", ["ENOLCK", "ENOSYS"])
def test_a_disk_without_locks_is_explained(name: str, tmp_path: Path) -> None:
    require_strace()

    def take() -> None:
        with lock(tmp_path / "x"):
            pass

    outcome = inject(take, "flock", f"error={name}", 1, tmp_path)
    assert outcome.code == EnlaceError.exit_code
    assert outcome.said.startswith("error: este disco no admite cerrojos") and name in outcome.said
