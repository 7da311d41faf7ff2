"""Dónde vive la base de datos del hogar."""

import os
from pathlib import Path

from enlace.durable import DISK
from enlace.durable.disk import make_folders

NAME = "household.db"


def home_directory() -> Path:
    """La carpeta del hogar: la de ENLACE_HOME o, si no, `var/`."""
    return Path(os.environ.get("ENLACE_HOME") or "var")


def make_private_folder(folder: Path) -> None:
    """Si falta, la crea solo para su dueño y con su nombre a salvo de un corte. OSError si no se puede."""
    if folder.is_dir():
        return
    make_folders(folder.parent, DISK)
    folder.mkdir(mode=0o700, exist_ok=True)  # otro proceso puede crearla a la vez
    DISK.fsync_dir(folder.parent)
