"""Los cambios de la base de datos, numerados: cada uno entero o nada, y antes una copia de seguridad."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing, suppress
from datetime import UTC, datetime
from pathlib import Path

from enlace.durable import DISK
from enlace.errors import CorruptDataError

_FOLDER = Path(__file__).parent
_BACKUPS_KEPT = 3


def scripts() -> list[Path]:
    """Los ficheros `0001_nombre.sql`, en orden; el número es la versión a la que llevan. No se cambian nunca."""
    return sorted(_FOLDER.glob("*.sql"))


def migrate(connection: sqlite3.Connection, path: Path, application_id: int) -> None:
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
    if 0 < version < len(files):
        _back_up(connection, path, version)
    for number, file in enumerate(files[version:], version + 1):
        _apply(connection, number, file.read_text(encoding="utf-8"), application_id)


def newest_backup(path: Path) -> Path | None:
    """La última copia de seguridad de esa base, si hay alguna."""
    return next(iter(_backups(path)), None)


def _version(connection: sqlite3.Connection) -> int:
    return int(connection.execute("PRAGMA user_version").fetchone()[0])


def _apply(connection: sqlite3.Connection, number: int, script: str, application_id: int) -> None:
    connection.execute("BEGIN IMMEDIATE")
    try:
        if _version(connection) < number:  # otro proceso ha podido adelantarse
            for statement in _statements(script):
                connection.execute(statement)
            connection.execute(f"PRAGMA application_id = {application_id:d}")
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


def _back_up(connection: sqlite3.Connection, path: Path, version: int) -> None:
    folder = path.parent / "backups"
    folder.mkdir(mode=0o700, exist_ok=True)
    stamp = datetime.now(UTC).strftime("%Y%m%dT%H%M%S%fZ")
    final = folder / f"{path.stem}-{stamp}-v{version}.db"
    staged = final.with_suffix(".tmp")
    with closing(sqlite3.connect(staged)) as copy:
        connection.backup(copy)
        copy.execute("PRAGMA journal_mode = DELETE")
        if copy.execute("PRAGMA integrity_check(1)").fetchone() != ("ok",):
            raise CorruptDataError("la copia de seguridad no ha salido bien", where=str(staged), fix="repite la orden")
    staged.chmod(0o600)
    DISK.rename(staged, final)
    DISK.fsync_dir(folder)
    for old in (*_backups(path)[_BACKUPS_KEPT:], *folder.glob(f"{path.stem}-*.tmp")):
        DISK.unlink(old)


def _backups(path: Path) -> list[Path]:
    """De la más nueva a la más vieja."""
    return sorted((path.parent / "backups").glob(f"{path.stem}-*.db"), reverse=True)
