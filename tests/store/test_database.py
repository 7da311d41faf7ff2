"""La base de datos del hogar: se abre sana o dice qué le pasa; lo confirmado no se pierde; migrar es todo o nada."""

import os
import random
import shutil
import signal
import sqlite3
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from enlace.errors import CorruptDataError, EnlaceError, LockedError, ResourceError
from enlace.store import database as module
from enlace.store import home_directory, migrations, open_database, open_household
from enlace.store.search import Pause, SearchState
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
    with pytest.raises(EnlaceError, match="no se puede usar"):
        open_household(tmp_path / "fichero")


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_a_spoiled_file_opens_with_what_it_had_or_is_told(path: Path, tmp_path: Path, data: st.DataObject) -> None:
    spoiled = tmp_path / "estropeada" / "household.db"
    shutil.rmtree(spoiled.parent, ignore_errors=True)
    spoiled.parent.mkdir()
    content = bytearray(path.read_bytes())
    if data.draw(st.booleans()):
        del content[data.draw(st.integers(0, len(content))) :]
    else:
        for _ in range(data.draw(st.integers(1, 8))):
            content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    spoiled.write_bytes(content)
    try:
        database = open_database(spoiled)
    except EnlaceError:
        return
    state = SearchState(database)
    try:
        state.pause("x", Pause(2.0, "bloqueado", "porque sí", 1))
        state.spent("brave", "2026-12")
        assert state.pause_of("x", 1.0) is not None
    except EnlaceError:
        pass
    finally:
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


KILLED = """
import sys
from pathlib import Path
from enlace.store import migrations, open_database
migrations._FOLDER = Path(sys.argv[2])
print("ya", flush=True)
open_database(Path(sys.argv[1])).close()
"""


def test_killed_at_any_moment_of_an_upgrade_it_opens_and_ends_it(
    path: Path, monkeypatch: pytest.MonkeyPatch, long_run: bool
) -> None:
    folder = path.parent / "migraciones"
    folder.mkdir()
    slow = "".join(f"CREATE TABLE t{n} (x INTEGER) STRICT;\nINSERT INTO t{n} VALUES ({n});\n" for n in range(60))
    for number, script in enumerate((migrations.scripts()[0].read_text(), slow), 1):
        (folder / f"{number:04d}_x.sql").write_text(script)
    chance = random.Random(7)
    seen = set()
    for _ in range(40 if long_run else 6):
        house = path.parent / "copia"
        shutil.rmtree(house, ignore_errors=True)
        house.mkdir()
        shutil.copy(path, house)
        child = subprocess.Popen(
            [sys.executable, "-c", KILLED, str(house / path.name), str(folder)], stdout=subprocess.PIPE, text=True
        )
        assert child.stdout and child.stdout.readline() == "ya\n"
        try:
            child.wait(timeout=chance.uniform(0, 0.03))
        except subprocess.TimeoutExpired:
            child.send_signal(signal.SIGKILL)
        child.communicate()
        with sqlite3.connect(house / path.name) as connection:
            (version,) = connection.execute("PRAGMA user_version").fetchone()
            (tables,) = connection.execute("SELECT count(*) FROM sqlite_schema WHERE name GLOB 't[0-9]*'").fetchone()
        connection.close()
        assert (version, tables) in {(1, 0), (2, 60)}
        seen.add(version)
        with monkeypatch.context() as patched:
            patched.setattr(migrations, "_FOLDER", folder)
            assert (spent(house / path.name), pragma(house / path.name, "user_version")) == (7, 2)
    assert 1 in seen, "ninguna murió a tiempo"


FIRST = """
import sys
from pathlib import Path
from enlace.store import open_household
from enlace.store.search import SearchState
database = open_household(Path(sys.argv[1]))
for _ in range(20):
    assert SearchState(database).spend("brave", "2026-12", 1000)
"""


def test_several_processes_open_a_new_house_at_once(tmp_path: Path) -> None:
    children = [subprocess.Popen([sys.executable, "-c", FIRST, str(tmp_path)]) for _ in range(4)]
    assert [child.wait(60) for child in children] == [0, 0, 0, 0]
    assert spent(tmp_path / "household.db") == 80


WRITER = """
import sys
from pathlib import Path
from enlace.store import open_household
from enlace.store.search import SearchState
state = SearchState(open_household(Path(sys.argv[1])))
while state.spend("brave", "2026-12", 10**9):
    print(state.spent("brave", "2026-12"), flush=True)
"""


def test_what_was_acknowledged_survives_a_kill(tmp_path: Path) -> None:
    for _ in range(3):
        child = subprocess.Popen([sys.executable, "-c", WRITER, str(tmp_path)], stdout=subprocess.PIPE, text=True)
        assert child.stdout
        for _ in range(10):
            acknowledged = int(child.stdout.readline())
        child.kill()
        rest = child.communicate()[0].split()
        acknowledged = int(rest[-1]) if rest else acknowledged
        assert spent(tmp_path / "household.db") in (acknowledged, acknowledged + 1)


@pytest.mark.skipif(os.geteuid() != 0, reason="montar un disco pequeño pide ser administrador")
def test_a_full_disk_is_told_and_loses_nothing(tmp_path: Path) -> None:
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=400k", "tmpfs", str(tmp_path)], check=False)
    if mounted.returncode:
        pytest.skip("aquí no se puede montar un disco pequeño")
    try:
        database = open_household(tmp_path)
        state = SearchState(database)
        kept = 0
        with pytest.raises(ResourceError, match="no hay sitio"):
            while True:
                state.remember(f"clave {kept}", "x" * 5000, now=1.0, expires_at=1e12, max_entries=10**6)
                kept += 1
        assert kept and all(state.cached(f"clave {number}", 2.0) for number in range(kept))
        database.close()
    finally:
        subprocess.run(["umount", str(tmp_path)], check=True)
