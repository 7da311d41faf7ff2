"""Abrir la base de datos del hogar: sus ajustes, su integridad y sus transacciones."""

import sqlite3
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from enlace.durable import require_space
from enlace.durable.space import writing
from enlace.errors import CorruptDataError
from enlace.store.failures import damaged, explained, is_busy
from enlace.store.location import NAME, make_private_folder
from enlace.store.migrations import APPLICATION_ID, migrate, newest_backup

BUSY_SECONDS = 10.0
MAX_WAL_BYTES = 4_000_000
# La página más pequeña de SQLite, que toma por recién creado un fichero con menos.
SMALLEST_BYTES = 512
# Lo que ocupan el -shm y el primer -wal. Sin esto, en un disco lleno con bloques de 1 kB el -shm, que se escribe por la
# memoria, mata el proceso (SIGBUS) en vez de dar un error.
MIN_FREE_BYTES = 1_000_000
_PRAGMAS = (
    # FULL y no NORMAL: con WAL, NORMAL pierde en un corte de luz lo último que se dio por hecho.
    "PRAGMA synchronous = FULL",
    "PRAGMA foreign_keys = ON",
    "PRAGMA trusted_schema = OFF",
    # El traspaso automático del -wal a la base no espera a quien escribe, y hasta SQLite 3.51.2 (sqlite.org/wal.html,
    # «WAL-reset bug») coincidir con él puede perder lo confirmado. Lo hace `Database`, que sí espera.
    "PRAGMA wal_autocheckpoint = 0",
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
            self._empty_wal()

    @contextmanager
    def reading(self) -> Iterator[sqlite3.Connection]:
        """Para consultas sueltas. Los mismos errores que `transaction`."""
        with self._lock, explained(self._path):
            yield self._connection

    def close(self) -> None:
        """Cierra la conexión; después no sirve."""
        with self._lock:
            self._connection.close()

    def _empty_wal(self) -> None:
        """Si el -wal ha crecido, lo pasa a la base y lo vacía, sin que nadie escriba mientras (de ahí TRUNCATE)."""
        # Si hoy no se puede, lo confirmado sigue a salvo en el -wal, y se intenta tras la siguiente.
        with suppress(OSError, sqlite3.Error):
            if _wal(self._path).stat().st_size > MAX_WAL_BYTES:
                self._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")


def open_household(home: Path) -> Database:
    """La base de datos de un hogar, creándola si es la primera vez. Los errores, en `open_database`."""
    return open_database(home / NAME)


def open_database(path: Path) -> Database:
    """Abre o crea el fichero, comprueba que está sano y lo pone al día, con copia de seguridad si ya tenía algo.

    CorruptDataError si está dañado, no es de ENLACE o es de una versión más nueva; LockedError, ResourceError o
    EnlaceError si no se puede usar. SQLite no guarda sumas de sus páginas: un dato cambiado por otro igual de válido
    no se nota.
    """
    with writing(path.parent):
        make_private_folder(path.parent)
    require_space(path.parent, MIN_FREE_BYTES)
    with writing(path), explained(path):
        _require_nothing_missing(path)
        connection = sqlite3.connect(path, timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False)
        try:
            _prepare(connection, path)
        except BaseException:
            connection.close()
            raise
    return Database(connection, path)


def _prepare(connection: sqlite3.Connection, path: Path) -> None:
    _require_ours(connection, path)
    path.chmod(0o600)  # lo que se busca en una casa es de la casa
    _use_wal(connection)
    for pragma in _PRAGMAS:
        connection.execute(pragma)
    _require_sound(connection, path)
    migrate(connection, path)


def _require_nothing_missing(path: Path) -> None:
    """Crear una base vacía donde hubo otra taparía la pérdida, y SQLite borraría el -wal que queda."""
    # En este orden: al crearla, primero tiene tamaño la base y luego el -wal.
    had_one = newest_backup(path) is not None or _size(_wal(path)) > 0
    size = _size(path)
    if 0 < size < SMALLEST_BYTES or (had_one and not size):
        raise damaged(path, "falta o está casi vacía, y ya hubo una")


def _require_ours(connection: sqlite3.Connection, path: Path) -> None:
    connection.execute("BEGIN")  # las dos preguntas, sobre el mismo instante: otro proceso puede estar creándola
    (found,) = connection.execute("PRAGMA application_id").fetchone()
    (tables,) = connection.execute("SELECT count(*) FROM sqlite_schema").fetchone()
    connection.execute("COMMIT")
    if found != APPLICATION_ID and tables:
        raise CorruptDataError(
            "este fichero no es la base de datos de un hogar",
            where=str(path),
            why="es una base de datos de SQLite de otro programa",
            fix="usa otra carpeta en ENLACE_HOME",
        )


def _require_sound(connection: sqlite3.Connection, path: Path) -> None:
    (page_bytes,) = connection.execute("PRAGMA page_size").fetchone()
    # SQLite rellena con ceros la última página si está a medias; con algo en el -wal es normal: la tiene entera.
    if not _size(_wal(path)) and _size(path) % page_bytes:
        raise damaged(path, "le falta el final")
    # Y no quick_check, que no compara los índices con las tablas: 25 MB, 13 ms en vez de 10.
    problems = [str(row[0]) for row in connection.execute("PRAGMA integrity_check(5)")]
    if problems != ["ok"]:
        raise damaged(path, "; ".join(problems))


def _use_wal(connection: sqlite3.Connection) -> None:
    """Cambiar de modo, que solo pasa la primera vez, no espera a los demás por su cuenta: se insiste."""
    deadline = time.monotonic() + BUSY_SECONDS
    while True:
        try:
            connection.execute("PRAGMA journal_mode = WAL")
            return
        except sqlite3.OperationalError as error:
            if not is_busy(error) or time.monotonic() > deadline:
                raise
        time.sleep(0.01)


def _wal(path: Path) -> Path:
    return path.with_name(f"{path.name}-wal")


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return 0
