"""El cerrojo dentro de un proceso (entre procesos está en tests/crash)."""

import os
import socket
from pathlib import Path

import pytest

from enlace.durable import lock
from enlace.errors import LockedError


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
