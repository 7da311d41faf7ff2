"""Ficheros normales: abrir una tubería puede no volver nunca, y seguir un enlace lleva fuera de la carpeta."""

import os
import stat
from pathlib import Path

from enlace.durable.space import reading
from enlace.errors import CorruptDataError, RefusedError


def plain_status(path: Path) -> os.stat_result:
    """Lo que el sistema dice de un fichero. NotFoundError si no está; CorruptDataError si no es un fichero normal."""
    with reading(path):
        status = path.lstat()
    if not stat.S_ISREG(status.st_mode):
        raise CorruptDataError(
            f"{path.name} no es un fichero normal",
            where=str(path),
            why="es un enlace, una carpeta, una tubería o un dispositivo",
            fix="pon en su lugar una copia del fichero, o quítalo",
        )
    return status


def files_in(folder: Path) -> list[Path]:
    """Los ficheros de una carpeta que puede ser de cualquiera y de sus subcarpetas, en orden de nombre.

    RefusedError si dentro hay un enlace: metería en los datos lo que otro no debe ver. La carpeta en sí puede serlo.
    """
    found = sorted(folder.rglob("*"))
    for path in found:
        if path.is_symlink():
            raise RefusedError(
                "hay un enlace entre los datos",
                where=str(path),
                why="puede llevar a cualquier fichero de esta máquina",
                fix="pon ahí una copia de lo que enlaza, o quítalo",
            )
    return [path for path in found if path.is_file()]
