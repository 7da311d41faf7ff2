"""Los cambios de la base de datos, numerados: cada uno entero o nada, y antes una copia de seguridad."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing, suppress
from datetime import UTC, datetime
from pathlib import Path

from enlace.durable import DISK
from enlace.errors import CorruptDataError
from enlace.store.location import make_private_folder

# «ENLC» en ASCII, en la cabecera del fichero: así no se toma por nuestra la base de datos de otro programa.
APPLICATION_ID = 0x454E4C43
_FOLDER = Path(__file__).parent
_BACKUPS_KEPT = 3


def scripts() -> list[Path]:
    """Los ficheros `0001_nombre.sql`, en orden; el número es la versión a la que llevan. No se cambian nunca."""
    return sorted(_FOLDER.glob("*.sql"))


def migrate(connection: sqlite3.Connection, path: Path) -> None:
    """Pone la base al día. Si muere a la mitad, queda en la última versión completa.

    CorruptDataError si es de una versión más nueva que este ENLACE.
    """
    files = scripts()
    version = _version(connection)
    if version > len(files):
        raise CorruptDataError(
            f"la base de datos del hogar es de un ENLACE más nuevo (versión {version}; este llega a la {len(files)})",
            where=str(path),
            fix="actualiza ENLACE; con uno más viejo se estropearía",
        )
    for number, file in enumerate(files[version:], version + 1):
        _apply(connection, path, number, file.read_text(encoding="utf-8"), back_up=0 < version == number - 1)


def newest_backup(path: Path) -> Path | None:
    """La última copia de seguridad de esa base, si hay alguna."""
    return next(iter(_backups(path)), None)


def _version(connection: sqlite3.Connection) -> int:
    return int(connection.execute("PRAGMA user_version").fetchone()[0])


def _apply(connection: sqlite3.Connection, path: Path, number: int, script: str, *, back_up: bool) -> None:
    connection.execute("BEGIN IMMEDIATE")
    try:
        if _version(connection) < number:  # otro proceso ha podido adelantarse
            if back_up:  # con la base para sí: nadie escribe entre la copia y el cambio, ni copia a la vez
                _back_up(path, number - 1)
            for statement in _statements(script):
                connection.execute(statement)
            connection.execute(f"PRAGMA application_id = {APPLICATION_ID:d}")
            connection.execute(f"PRAGMA user_version = {number:d}")
        connection.execute("COMMIT")
    except BaseException:
        with suppress(sqlite3.Error):
            connection.execute("ROLLBACK")
        raise


def _statements(script: str) -> Iterator[str]:
    """Una a una: `executescript` confirmaría la transacción antes de empezar."""
    pending = ""
    for line in script.splitlines(keepends=True):
        pending += line
        if sqlite3.complete_statement(pending):
            yield pending
            pending = ""
    if pending.strip():  # la última, sin su punto y coma
        yield pending


def _back_up(path: Path, version: int) -> None:
    folder = _folder(path)
    make_private_folder(folder)
    for leftover in folder.glob(f"{path.stem}-*.tmp*"):  # de uno que murió copiando
        DISK.unlink(leftover)
    stamp = datetime.now(UTC).strftime("%Y%m%dT%H%M%S%fZ")
    final = folder / f"{path.stem}-{stamp}-v{version}.db"
    staged = final.with_suffix(".tmp")
    try:
        _copy(path, staged)
    except BaseException:
        with suppress(OSError):  # importa el primer fallo
            DISK.unlink(staged)
        raise
    DISK.rename(staged, final)
    DISK.fsync_dir(folder)
    for old in _backups(path)[_BACKUPS_KEPT:]:
        DISK.unlink(old)


def _copy(path: Path, target: Path) -> None:
    """Por una conexión aparte, porque SQLite no copia desde la que está escribiendo; queda en el disco y comprobada."""
    with closing(sqlite3.connect(path)) as source, closing(sqlite3.connect(target)) as copy:
        target.chmod(0o600)
        source.backup(copy)
        copy.execute("PRAGMA journal_mode = DELETE")
        if copy.execute("PRAGMA integrity_check(1)").fetchone() != ("ok",):
            raise CorruptDataError("la copia de seguridad no ha salido bien", where=str(target), fix="repite la orden")


def _folder(path: Path) -> Path:
    return path.parent / "backups"


def _backups(path: Path) -> list[Path]:
    """De la más nueva a la más vieja."""
    return sorted(_folder(path).glob(f"{path.stem}-*.db"), reverse=True)
