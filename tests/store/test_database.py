"""La base de datos del hogar: se abre sana o dice qué le pasa; lo confirmado no se pierde; migrar es todo o nada."""

import os
import shutil
import sqlite3
import subprocess
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from enlace.errors import CorruptDataError, EnlaceError, LockedError, ResourceError
from enlace.store import database as module
from enlace.store import home_directory, migrations, open_database, open_household
from enlace.store.search import Pause, SearchState
from tests.crash.forks import IGNORE_FORK_WARNING, start_child, wait_for
from tests.crash.mounts import small_disk
from tests.labels import label

OLD = "INSERT INTO search_budget VALUES ('brave', '2026-12', 7)"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Una base con algo dentro, cerrada."""
    database = open_database(tmp_path / "household.db")
    with database.transaction() as connection:
        connection.execute(OLD)
    database.close()
    return tmp_path / "household.db"


def pragma(path: Path, name: str) -> object:
    database = open_database(path)
    with database.reading() as connection:
        (value,) = connection.execute(f"PRAGMA {name}").fetchone()
    database.close()
    return value


def spent(path: Path) -> int:
    database = open_database(path)
    try:
        return SearchState(database).spent("brave", "2026-12")
    finally:
        database.close()


def test_a_new_house_is_created_for_its_owner_only(tmp_path: Path) -> None:
    open_household(tmp_path / "casa" / "nueva").close()
    assert (tmp_path / "casa" / "nueva" / "household.db").stat().st_mode & 0o777 == 0o600
    assert (tmp_path / "casa" / "nueva").stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("journal_mode", "wal"),
        ("synchronous", 2),
        ("foreign_keys", 1),
        ("trusted_schema", 0),
        ("wal_autocheckpoint", 0),
        ("application_id", 0x454E4C43),
    ],
)
def test_it_opens_with_the_settings_that_lose_nothing(path: Path, name: str, value: object) -> None:
    assert pragma(path, name) == value


def test_the_house_is_where_the_environment_says(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ENLACE_HOME", raising=False)
    assert home_directory() == Path("var")
    monkeypatch.setenv("ENLACE_HOME", "/otra/casa")
    assert home_directory() == Path("/otra/casa")


def test_a_transaction_that_fails_leaves_nothing(path: Path) -> None:
    database = open_database(path)
    with pytest.raises(RuntimeError), database.transaction() as connection:
        connection.execute("UPDATE search_budget SET spent = 99")
        raise RuntimeError
    database.close()
    assert spent(path) == 7


def test_several_threads_share_one_connection(path: Path) -> None:
    database = open_database(path)
    state = SearchState(database)
    threads = [
        threading.Thread(target=lambda: [state.spend("hilo", "2026-12", 10_000) for _ in range(25)]) for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert state.spent("hilo", "2026-12") == 100
    database.close()


def test_the_database_of_another_program_is_refused_and_left_as_it_was(tmp_path: Path) -> None:
    path = tmp_path / "household.db"
    with sqlite3.connect(path) as other:
        other.execute("CREATE TABLE cosas (x)")
    other.close()
    before = path.read_bytes()
    with pytest.raises(CorruptDataError, match="no es la base de datos de un hogar"):
        open_database(path)
    assert path.read_bytes() == before


def test_one_from_a_newer_enlace_is_refused(path: Path) -> None:
    with sqlite3.connect(path) as connection:
        connection.execute("PRAGMA user_version = 9999")
    connection.close()
    with pytest.raises(CorruptDataError, match="más nuevo"):
        open_database(path)


@pytest.mark.parametrize(
    "content",
    [b"no es una base de datos, es un texto bastante largo" * 9, bytes(4096), b"SQLite format 3\0" * 99],
    ids=label,
)
def test_a_file_that_is_not_a_database_is_told(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "household.db"
    path.write_bytes(content)
    try:
        open_database(path).close()
    except CorruptDataError as error:
        assert str(path) in error.where and error.fix


def test_a_folder_in_its_place_is_told(tmp_path: Path) -> None:
    (tmp_path / "household.db").mkdir()
    with pytest.raises(EnlaceError):
        open_database(tmp_path / "household.db")
    (tmp_path / "fichero").touch()
    with pytest.raises(EnlaceError, match="no se ha podido escribir") as caught:
        open_household(tmp_path / "fichero")
    assert caught.value.where == str(tmp_path / "fichero")


def spoil(content: bytearray, data: st.DataObject) -> None:
    """Le falta el final, o tiene bytes cambiados."""
    if data.draw(st.booleans()):
        del content[data.draw(st.integers(1, len(content) - 1)) :]
        return
    for _ in range(data.draw(st.integers(1, 8))):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))


def spent_or_told(path: Path) -> int | None:
    """Lo que dice la base tras usarla un poco, o None si dice que está mal; cualquier otra cosa es una traza."""
    try:
        database = open_database(path)
    except EnlaceError:
        return None
    state = SearchState(database)
    try:
        state.pause("x", Pause(2.0, "bloqueado", "porque sí", 1))
        assert state.pause_of("x", 1.0) is not None
        return state.spent("brave", "2026-12")
    except EnlaceError:
        return None
    finally:
        database.close()


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_a_spoiled_file_opens_with_what_it_had_or_is_told(path: Path, tmp_path: Path, data: st.DataObject) -> None:
    spoiled = tmp_path / "estropeada" / "household.db"
    shutil.rmtree(spoiled.parent, ignore_errors=True)
    spoiled.parent.mkdir()
    whole = path.read_bytes()
    content = bytearray(whole)
    spoil(content, data)
    spoiled.write_bytes(content)
    found = spent_or_told(spoiled)
    # Un dato cambiado por otro igual de válido no se puede notar; uno que falta, sí.
    if len(content) < len(whole):
        assert found in (None, 7)


@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_a_spoiled_log_gives_a_state_that_was_or_is_told(path: Path, tmp_path: Path, data: st.DataObject) -> None:
    spoiled = tmp_path / "estropeada" / "household.db"
    shutil.rmtree(spoiled.parent, ignore_errors=True)
    spoiled.parent.mkdir()
    database = open_database(path)
    before = SearchState(database).spent("brave", "2026-12")
    for _ in range(3):
        SearchState(database).spend("brave", "2026-12", 10**9)
    shutil.copy(path, spoiled)
    content = bytearray(path.with_name("household.db-wal").read_bytes())
    database.close()
    spoil(content, data)
    spoiled.with_name("household.db-wal").write_bytes(content)
    assert spent_or_told(spoiled) in (None, *range(before, before + 4))


@pytest.mark.parametrize("rest", ["household.db-wal", "backups/household-20261201T000000000000Z-v1.db"])
@pytest.mark.parametrize("empty", [True, False])
def test_a_house_whose_file_is_gone_is_told_and_not_replaced(tmp_path: Path, rest: str, empty: bool) -> None:
    (tmp_path / rest).parent.mkdir(exist_ok=True)
    (tmp_path / rest).write_bytes(b"lo que queda")
    if empty:
        (tmp_path / "household.db").touch()
    with pytest.raises(CorruptDataError, match="dañada") as caught:
        open_household(tmp_path)
    assert "ya hubo una" in caught.value.why and (tmp_path / rest).read_bytes() == b"lo que queda"


def test_a_table_that_is_gone_is_told(path: Path) -> None:
    with sqlite3.connect(path) as other:
        other.execute("DROP TABLE search_cache")
    other.close()
    database = open_database(path)
    with pytest.raises(CorruptDataError):
        SearchState(database).cached("a", 1.0)
    database.close()


def test_a_mistake_in_the_code_is_not_blamed_on_the_file(path: Path) -> None:
    database = open_database(path)
    database.close()
    with pytest.raises(sqlite3.ProgrammingError):
        SearchState(database).cached("a", 1.0)


def test_the_log_does_not_grow_while_others_have_it_open(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_WAL_BYTES", 100_000)
    other, database = open_database(path), open_database(path)
    state = SearchState(database)
    for number in range(200):
        state.remember(f"clave {number}", "x" * 3000, now=1.0, expires_at=9.0, max_entries=1000)
        assert SearchState(other).cached(f"clave {number}", 2.0)
        assert path.with_name("household.db-wal").stat().st_size < 200_000
    assert all(SearchState(other).cached(f"clave {number}", 2.0) for number in range(200))
    other.close()
    database.close()


def test_the_damage_is_told_with_the_last_good_copy(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    upgrade(path, monkeypatch, "CREATE TABLE dos (x INTEGER) STRICT;")
    path.write_bytes(b"x" * 8192)
    with pytest.raises(CorruptDataError) as caught:
        open_database(path)
    (copy,) = (path.parent / "backups").glob("*.db")
    assert str(copy) in caught.value.fix


def test_who_does_not_let_go_is_told(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "BUSY_SECONDS", 0.1)
    holder, other = open_database(path), open_database(path)
    with holder.transaction(), pytest.raises(LockedError), other.transaction():
        pass
    holder.close()
    other.close()


def upgrade(path: Path, monkeypatch: pytest.MonkeyPatch, *more: str) -> None:
    """Abre la base con un ENLACE que tiene esas migraciones además de las que hay."""
    folder = path.parent / "migraciones"
    folder.mkdir(exist_ok=True)
    for number, script in enumerate((migrations.scripts()[0].read_text(), *more), 1):
        (folder / f"{number:04d}_x.sql").write_text(script)
    monkeypatch.setattr(migrations, "_FOLDER", folder)
    open_database(path).close()


def test_upgrading_keeps_everything_and_a_copy_of_before(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    upgrade(path, monkeypatch, "CREATE TABLE dos (x INTEGER) STRICT;\nINSERT INTO dos VALUES (2);\n")
    assert (spent(path), pragma(path, "user_version")) == (7, 2)
    (copy,) = (path.parent / "backups").glob("*.db")
    assert copy.stat().st_mode & 0o777 == 0o600
    with sqlite3.connect(copy) as before:
        assert before.execute("PRAGMA user_version").fetchone() == (1,)
        assert before.execute("SELECT spent FROM search_budget").fetchone() == (7,)
    before.close()


def test_only_the_last_copies_are_kept(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    scripts = [f"CREATE TABLE t{number} (x INTEGER) STRICT;" for number in range(5)]
    for count in range(1, 6):
        upgrade(path, monkeypatch, *scripts[:count])
    assert len(list((path.parent / "backups").iterdir())) == 3


def test_an_upgrade_that_fails_leaves_it_as_it_was(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(EnlaceError):
        upgrade(path, monkeypatch, "CREATE TABLE dos (x INTEGER) STRICT;\nINSERT INTO no_existe VALUES (1);\n")
    with sqlite3.connect(path) as connection:
        assert connection.execute("PRAGMA user_version").fetchone() == (1,)
        assert connection.execute("SELECT name FROM sqlite_schema WHERE name = 'dos'").fetchone() is None
    connection.close()


def test_a_last_statement_without_its_semicolon_is_done_too(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    upgrade(path, monkeypatch, "CREATE TABLE dos (x INTEGER) STRICT;\nINSERT INTO dos VALUES (2) -- y ya")
    with sqlite3.connect(path) as connection:
        assert connection.execute("SELECT x FROM dos").fetchone() == (2,)
    connection.close()


def test_the_number_of_each_upgrade_is_the_version_it_leads_to() -> None:
    assert [int(file.name[:4]) for file in migrations.scripts()] == list(range(1, len(migrations.scripts()) + 1))


def test_without_room_for_the_copy_nothing_is_upgraded_nor_left_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with small_disk(tmp_path / "disco", 8 << 20) as disk:
        path = disk / "household.db"
        database = open_database(path)
        SearchState(database).remember("a", "x" * (2 << 20), now=1.0, expires_at=9.0, max_entries=9)
        database.close()
        (disk / "relleno").write_bytes(bytes(shutil.disk_usage(disk).free - (3 << 19)))
        with pytest.raises(ResourceError, match="no hay sitio"):
            upgrade(path, monkeypatch, "CREATE TABLE dos (x INTEGER) STRICT;")
        assert list((disk / "backups").iterdir()) == []
        monkeypatch.undo()
        assert pragma(path, "user_version") == 1


def test_a_full_disk_is_told_and_loses_nothing(tmp_path: Path) -> None:
    with small_disk(tmp_path / "disco", 2 << 20) as disk:
        database = open_household(disk)
        state = SearchState(database)
        kept = 0
        try:
            with pytest.raises(ResourceError, match="no hay sitio"):
                while True:
                    state.remember(f"clave {kept}", "x" * 20_000, now=1.0, expires_at=1e12, max_entries=10**6)
                    kept += 1
            assert kept and all(state.cached(f"clave {number}", 2.0) for number in range(kept))
        finally:
            database.close()


@pytest.mark.parametrize("existing", [True, False])
def test_a_disk_already_full_is_told_before_starting(tmp_path: Path, existing: bool) -> None:
    with small_disk(tmp_path / "disco", 2 << 20) as disk:
        if existing:
            open_household(disk).close()
        with (disk / "lleno").open("wb", buffering=0) as file, pytest.raises(OSError, match="space"):
            while True:
                file.write(bytes(4096))
        with pytest.raises(ResourceError, match="no hay espacio"):
            open_household(disk)


@pytest.mark.parametrize("existing", [True, False])
def test_a_disk_that_cannot_be_written_is_told(tmp_path: Path, existing: bool) -> None:
    with small_disk(tmp_path / "disco", 2 << 20) as disk:
        if existing:
            open_household(disk / "casa").close()
        subprocess.run(["mount", "-o", "remount,ro", str(disk)], check=True)
        with pytest.raises(EnlaceError):
            open_household(disk / "casa")


def told_to_another_user(action: Callable[[], object]) -> bool:
    """Si a quien no es el dueño se le dice con un EnlaceError."""

    def as_nobody() -> None:
        os.setgid(65534)
        os.setuid(65534)
        with pytest.raises(EnlaceError):
            action()

    return wait_for(start_child(as_nobody)) == 0


@pytest.mark.skipif(os.geteuid() != 0, reason="PERMISOS SIN PROBAR: hace falta root para ser otro usuario")
@pytest.mark.filterwarnings(IGNORE_FORK_WARNING)
def test_who_may_not_use_it_is_told(path: Path) -> None:
    for folder in (path.parent, *path.parents[1:3]):
        folder.chmod(0o755)
    assert told_to_another_user(lambda: open_database(path))
    assert told_to_another_user(lambda: open_household(path.parent / "nueva"))
    path.chmod(0o666)
    assert told_to_another_user(lambda: open_database(path))
