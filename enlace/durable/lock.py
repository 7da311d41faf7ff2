"""El cerrojo: un solo proceso a la vez, y que muere con quien lo tiene."""

import errno
import fcntl
import os
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from enlace.durable.disk import DISK, make_folders
from enlace.durable.space import writing
from enlace.durable.staging import is_alive
from enlace.errors import EnlaceError, LockedError

_HELD: set[int] = set()
# El cerrojo de un proceso recién muerto puede tardar un instante en soltarse (un hijo suyo aún sin exec).
DEAD_OWNER_GRACE = 2.0
# Un disco de red sin servidor de cerrojos, o un sistema de ficheros que no los tiene.
NO_LOCKS = {errno.ENOLCK, errno.EOPNOTSUPP, errno.ENOSYS}


@contextmanager
def lock(path: Path) -> Iterator[None]:
    """Tiene para sí el fichero `path` mientras dure el bloque.

    LockedError, con el pid y la máquina, si ya lo tiene otro (u otro hilo). El núcleo lo suelta cuando muere su
    dueño, aunque sea con SIGKILL; el fichero se queda. En un disco de red depende de que el servidor lo admita.
    """
    with writing(path):
        make_folders(path.parent, DISK)
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    owner = os.getpid()
    try:
        with writing(path):
            _acquire(descriptor, path)
        _HELD.add(descriptor)
        yield
    finally:
        # En un hijo bifurcado el descriptor ya se cerró y su número puede ser de otro fichero.
        if os.getpid() == owner:
            _HELD.discard(descriptor)
            # Cerrar no basta: un hijo entre su fork y su exec aún comparte el descriptor.
            fcntl.flock(descriptor, fcntl.LOCK_UN)
            os.close(descriptor)


def _acquire(descriptor: int, path: Path) -> None:
    deadline = time.monotonic() + DEAD_OWNER_GRACE
    while not _try(descriptor, path):
        pid, _, host = os.pread(descriptor, 1024, 0).decode("utf-8", "replace").strip().partition(" ")
        if _is_dead(pid, host) and time.monotonic() < deadline:
            time.sleep(0.05)
            continue
        raise LockedError(
            f"lo está usando el proceso {pid} en {host}"
            if host
            else "lo está usando otro proceso que acaba de empezar",
            where=str(path),
            fix=f"espera a que termine o ciérralo en {host}: kill {pid}" if host else "inténtalo en un momento",
        )
    # Solo sirve al mensaje del que llegue después: quien manda es el cerrojo del núcleo.
    os.ftruncate(descriptor, 0)
    os.pwrite(descriptor, f"{os.getpid()} {socket.gethostname()}\n".encode(), 0)


def _try(descriptor: int, path: Path) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError as error:
        if error.errno not in NO_LOCKS:
            raise
        raise EnlaceError(
            "este disco no admite cerrojos y sin él dos procesos podrían pisarse",
            where=str(path),
            why=errno.errorcode[error.errno],
            fix="elige una carpeta en un disco de esta máquina",
        ) from error
    return True


def _is_dead(pid: str, host: str) -> bool:
    """Si el dueño apuntado era de esta máquina y ya no existe."""
    return host == socket.gethostname() and pid.isdecimal() and not is_alive(int(pid))


def _forget_in_child() -> None:
    """Un hijo (los del cargador de datos) heredaría el cerrojo y lo mantendría tras la muerte de su dueño."""
    for descriptor in _HELD:
        os.close(descriptor)
    _HELD.clear()


os.register_at_fork(after_in_child=_forget_in_child)
