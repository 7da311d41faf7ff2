"""Los nombres provisionales: lo que está a medio escribir (`.tmp-…`) o a medio borrar (`.del-…`)."""

import contextlib
import itertools
import os
import re
import secrets
from pathlib import Path

from enlace.durable.disk import DISK, Disk
from enlace.durable.space import reading, writing
from enlace.errors import NotFoundError

# El pid dice si quien lo dejó sigue vivo, y la sesión distingue a este proceso de otro anterior con el mismo pid
# (en un contenedor se repite en cada arranque).
_SESSION = secrets.token_hex(4)
_COUNTER = itertools.count()
_LEFTOVER = re.compile(r"\.(?:tmp|del)-.*-(?P<pid>\d+)-(?P<session>[0-9a-f]{8})-\d+")


def staging_path(path: Path, mark: str) -> Path:
    """Un nombre libre junto a `path`; `mark` es `tmp` (escribiéndose) o `del` (borrándose)."""
    return path.with_name(f".{mark}-{path.name}-{os.getpid()}-{_SESSION}-{next(_COUNTER)}")


def remove(path: Path, *, disk: Disk = DISK) -> None:
    """Borra un fichero o una carpeta de forma que un corte nunca deje media con su nombre de siempre.

    NotFoundError si no existe. La carpeta cambia de nombre, con el cambio ya en el disco, antes de vaciarse.
    """
    if not os.path.lexists(path):
        raise NotFoundError("no existe lo que se quiere borrar", where=str(path))
    with writing(path):
        if path.is_symlink() or not path.is_dir():
            disk.unlink(path)
            disk.fsync_dir(path.parent)
            return
        doomed = staging_path(path, "del")
        disk.rename(path, doomed)
        disk.fsync_dir(path.parent)
        delete_tree(doomed, disk)


def sweep(folder: Path, *, disk: Disk = DISK) -> list[Path]:
    """Borra de `folder` lo que dejaron a medias procesos que ya no existen y devuelve qué era.

    No toca lo que otro proceso vivo, u otro hilo de este, está escribiendo o borrando. El pid se busca en esta
    máquina: en un disco de red solo debe barrer la máquina que escribe.
    """
    if not folder.is_dir():
        return []
    with reading(folder):
        leftovers = sorted(place for place in folder.iterdir() if _is_leftover(place.name))
    with writing(folder):
        for place in leftovers:
            delete_tree(place, disk)
        if leftovers:
            disk.fsync_dir(folder)
    return leftovers


def delete_tree(path: Path, disk: Disk) -> None:
    """Borra `path` y lo que cuelgue de él, sin seguir enlaces; si otro proceso se adelanta, no pasa nada."""
    with contextlib.suppress(FileNotFoundError):
        if path.is_symlink() or not path.is_dir():
            disk.unlink(path)
            return
        for child in path.iterdir():
            delete_tree(child, disk)
        disk.rmdir(path)


def _is_leftover(name: str) -> bool:
    match = _LEFTOVER.fullmatch(name)
    if match is None:
        return False
    pid = int(match["pid"])
    if pid == os.getpid():
        return match["session"] != _SESSION
    return not is_alive(pid)


def is_alive(pid: int) -> bool:
    """Si existe ese proceso en esta máquina, sea de quien sea."""
    try:
        os.kill(pid, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:
        pass  # existe, pero es de otra persona
    return True
