"""El cerrojo dentro de un proceso (entre procesos está en tests/crash)."""

import fcntl
import importlib
import os
import socket
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from enlace.durable import lock
from enlace.errors import LockedError

lock_module = importlib.import_module("enlace.durable.lock")


def test_taken_twice_in_the_same_process_is_refused_naming_it(tmp_path: Path) -> None:
    path = tmp_path / "nueva" / "run.lock"
    with lock(path):
        with pytest.raises(LockedError) as caught, lock(path):
            pass
        assert str(os.getpid()) in caught.value.what and socket.gethostname() in caught.value.what
        assert f"kill {os.getpid()}" in caught.value.fix
        with pytest.raises(LockedError), lock(path):  # el rechazo no soltó el cerrojo
            pass


def test_released_by_an_error_inside_and_taken_again(tmp_path: Path) -> None:
    with pytest.raises(ZeroDivisionError), lock(tmp_path / "x"):
        raise ZeroDivisionError
    with lock(tmp_path / "x"):
        pass


def test_holder_without_a_name_yet_is_still_refused(tmp_path: Path) -> None:
    with lock(tmp_path / "x"):
        (tmp_path / "x").write_bytes(b"")
        with pytest.raises(LockedError, match="acaba de empezar"), lock(tmp_path / "x"):
            pass


def test_released_even_if_a_child_still_shares_the_descriptor(tmp_path: Path) -> None:
    with lock(tmp_path / "x"):
        (held,) = lock_module._HELD
        shared = os.dup(held)
    try:
        with lock(tmp_path / "x"):
            pass
    finally:
        os.close(shared)


def test_a_dead_owner_whose_lock_lingers_is_waited_for_a_moment(tmp_path: Path) -> None:
    dead = subprocess.run([sys.executable, "-c", "import os; print(os.getpid())"], capture_output=True, text=True)
    path = tmp_path / "x"
    lingering = os.open(path, os.O_RDWR | os.O_CREAT)
    fcntl.flock(lingering, fcntl.LOCK_EX)
    os.write(lingering, f"{dead.stdout.strip()} {socket.gethostname()}\n".encode())
    release = threading.Timer(0.3, os.close, [lingering])
    release.start()
    with lock(path):
        assert path.read_text().startswith(f"{os.getpid()} ")
    release.join()


@pytest.mark.parametrize("pid", ["²", "", "-1"])
def test_a_pid_that_is_not_a_number_is_only_a_name(pid: str, tmp_path: Path) -> None:
    path = tmp_path / "x"
    with lock(path):
        path.write_text(f"{pid} {socket.gethostname()}\n")
        with pytest.raises(LockedError), lock(path):
            pass
