"""Abrir la base de datos del hogar: sus ajustes, su integridad y sus transacciones."""

import os
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from enlace.errors import CorruptDataError, EnlaceError, LockedError, ResourceError
from enlace.store.migrations import migrate, newest_backup

NAME = "household.db"
# «ENLC» en ASCII, en la cabecera del fichero: así no se toma por nuestra la base de datos de otro programa.
APPLICATION_ID = 0x454E4C43
BUSY_SECONDS = 10.0
# FULL y no NORMAL: con WAL, NORMAL pierde en un corte de luz lo último que se dio por hecho.
_PRAGMAS = (
    "PRAGMA journal_mode = WAL",
    "PRAGMA synchronous = FULL",
    "PRAGMA foreign_keys = ON",
    "PRAGMA trusted_schema = OFF",
)


class Database:
    """Una conexión, que varios hilos pueden usar por turnos."""

    def __init__(self, connection: sqlite3.Connection, path: Path) -> None:
        self._connection = connection
        self._path = path
        self._lock = threading.RLock()

    @contextmanager
    def transaction(self) -> Iterator[sqlite3.Connection]:
        """Lo de dentro se hace entero o no se hace; al salir está a salvo de un corte de luz.

        LockedError si otro proceso no suelta la base; ResourceError sin sitio; CorruptDataError si está dañada.
        """
        with self._lock, explained(self._path):
            self._connection.execute("BEGIN IMMEDIATE")
            try:
                yield self._connection
                self._connection.execute("COMMIT")
            except BaseException:
                if self._connection.in_transaction:
                    self._connection.execute("ROLLBACK")
                raise

    @contextmanager
    def reading(self) -> Iterator[sqlite3.Connection]:
        """Para consultas sueltas. Los mismos errores que `transaction`."""
        with self._lock, explained(self._path):
            yield self._connection

    def close(self) -> None:
        """Cierra la conexión; después no sirve."""
        with self._lock:
            self._connection.close()


def home_directory() -> Path:
    """La carpeta del hogar: la de ENLACE_HOME o, si no, `var/`."""
    return Path(os.environ.get("ENLACE_HOME") or "var")


def open_household(home: Path) -> Database:
    """La base de datos de un hogar, creándola si es la primera vez. Los errores, en `open_database`."""
    return open_database(home / NAME)


def open_database(path: Path) -> Database:
    """Abre o crea el fichero, comprueba que está sano y lo pone al día, con copia de seguridad si ya tenía algo.

    CorruptDataError si está dañado, no es de ENLACE o es de una versión más nueva; LockedError, ResourceError o
    EnlaceError si no se puede usar.
    """
    try:
        with explained(path):
            path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            connection = sqlite3.connect(path, timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False)
            try:
                _prepare(connection, path)
            except BaseException:
                connection.close()
                raise
    except OSError as error:  # la carpeta no se puede crear, o el fichero es de otro
        raise _unusable(path, str(error)) from error
    return Database(connection, path)


def _prepare(connection: sqlite3.Connection, path: Path) -> None:
    path.chmod(0o600)  # lo que se busca en una casa es de la casa
    _require_ours(connection, path)
    for pragma in _PRAGMAS:
        connection.execute(pragma)
    problems = [str(row[0]) for row in connection.execute("PRAGMA quick_check(5)")]
    if problems != ["ok"]:
        raise _damaged(path, "; ".join(problems))
    migrate(connection, path, APPLICATION_ID)


def _require_ours(connection: sqlite3.Connection, path: Path) -> None:
    (found,) = connection.execute("PRAGMA application_id").fetchone()
    (tables,) = connection.execute("SELECT count(*) FROM sqlite_schema").fetchone()
    if found != APPLICATION_ID and tables:
        raise CorruptDataError(
            "este fichero no es la base de datos de un hogar",
            where=str(path),
            why="es una base de datos de SQLite de otro programa",
            fix="usa otra carpeta en ENLACE_HOME",
        )


@contextmanager
def explained(path: Path) -> Iterator[None]:
    """Dentro, lo que falle en SQLite sale como un error que una persona puede entender."""
    try:
        yield
    except sqlite3.Error as error:
        raise _explain(error, path) from error
    except UnicodeDecodeError as error:  # el propio mensaje de SQLite cita bytes que no son texto
        raise _damaged(path, "hay texto que no es UTF-8") from error


def _explain(error: sqlite3.Error, path: Path) -> EnlaceError:
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF
    where, why = str(path), str(error)
    if code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
        return LockedError(
            "otro proceso no suelta la base de datos del hogar", where=where, why=why, fix="ciérralo o espera y repite"
        )
    if code in (sqlite3.SQLITE_FULL, sqlite3.SQLITE_NOMEM):
        return ResourceError(
            "no hay sitio para la base de datos del hogar", where=where, why=why, fix="libera espacio y repite"
        )
    # Sin código es el módulo de Python, que no ha podido leer como texto lo que decía serlo.
    if isinstance(error, sqlite3.OperationalError) and code not in (0, sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB):
        return _unusable(path, why)
    return _damaged(path, why)


def _unusable(path: Path, why: str) -> EnlaceError:
    return EnlaceError(
        "no se puede usar la base de datos del hogar", where=str(path), why=why, fix="mira los permisos y el disco"
    )


def _damaged(path: Path, why: str) -> CorruptDataError:
    backup = newest_backup(path)
    fix = f"aparta {path.name}, {path.name}-wal y {path.name}-shm; ENLACE creará una base vacía"
    if backup:
        fix = f"aparta {path.name}, {path.name}-wal y {path.name}-shm y copia en su lugar la última buena: {backup}"
    return CorruptDataError("la base de datos del hogar está dañada", where=str(path), why=why, fix=fix)
