"""Lo que falla en SQLite, contado a una persona y con qué hacer."""

import re
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from enlace.errors import CorruptDataError, EnlaceError, LockedError, ResourceError
from enlace.store.migrations import newest_backup

_BUSY = {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED}
_NO_ROOM = {sqlite3.SQLITE_FULL, sqlite3.SQLITE_NOMEM}
_CAUSES = {
    sqlite3.SQLITE_BUSY: "otro proceso está escribiendo",
    sqlite3.SQLITE_LOCKED: "otro proceso está escribiendo",
    sqlite3.SQLITE_FULL: "el disco está lleno",
    sqlite3.SQLITE_NOMEM: "no queda memoria",
    sqlite3.SQLITE_READONLY: "no se deja escribir",
    sqlite3.SQLITE_IOERR: "error de entrada o salida del disco",
    sqlite3.SQLITE_CANTOPEN: "no se puede abrir",
    sqlite3.SQLITE_CORRUPT: "su contenido no cuadra",
    sqlite3.SQLITE_NOTADB: "no tiene el formato de una base de datos",
}
# Errores genéricos que, con nuestro SQL, solo puede dar un fichero cambiado por fuera.
_SPOILED = re.compile(r"no such |has no column|unsupported file format|malformed|could not decode", re.IGNORECASE)


@contextmanager
def explained(path: Path) -> Iterator[None]:
    """Dentro, lo que falle en SQLite por el fichero o por el disco sale como un error que una persona puede entender.

    Un uso equivocado desde el código sale tal cual: no es culpa del fichero y el consejo sería malo.
    """
    try:
        yield
    except (sqlite3.ProgrammingError, sqlite3.InterfaceError):
        raise
    except sqlite3.Error as error:
        raise _explain(error, path) from error
    except UnicodeDecodeError as error:  # el propio mensaje de SQLite cita bytes que no son texto
        raise damaged(path, "hay texto que no es UTF-8") from error


def is_busy(error: sqlite3.Error) -> bool:
    """Si lo tiene otro proceso."""
    return _code(error) in _BUSY


def damaged(path: Path, why: str) -> CorruptDataError:
    """El error de una base estropeada, con la última copia buena si la hay."""
    backup = newest_backup(path)
    aside = f"aparta {path.name}, {path.name}-wal y {path.name}-shm"
    fix = (
        f"{aside} y copia en su lugar la última buena: {backup}" if backup else f"{aside}; ENLACE creará una base vacía"
    )
    return CorruptDataError("la base de datos del hogar está dañada", where=str(path), why=why, fix=fix)


def _explain(error: sqlite3.Error, path: Path) -> EnlaceError:
    code, where, why = _code(error), str(path), _cause(error)
    if code in _BUSY:
        return LockedError(
            "otro proceso no suelta la base de datos del hogar", where=where, why=why, fix="ciérralo o espera y repite"
        )
    if code in _NO_ROOM:
        return ResourceError(
            "no hay sitio para la base de datos del hogar", where=where, why=why, fix="libera espacio y repite"
        )
    if (
        isinstance(error, sqlite3.OperationalError)
        and code != sqlite3.SQLITE_CORRUPT
        and not _SPOILED.search(str(error))
    ):
        return EnlaceError(
            "no se puede usar la base de datos del hogar", where=where, why=why, fix="mira los permisos y el disco"
        )
    return damaged(path, why)


def _cause(error: sqlite3.Error) -> str:
    name = getattr(error, "sqlite_errorname", "")
    cause = _CAUSES.get(_code(error))
    return f"{cause} ({name})" if cause and name else str(error)


def _code(error: sqlite3.Error) -> int:
    """El código principal; 0 si el error es del módulo de Python y no de SQLite."""
    return int(getattr(error, "sqlite_errorcode", 0)) & 0xFF
