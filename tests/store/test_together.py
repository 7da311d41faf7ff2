"""Varios procesos de verdad sobre la misma base, a la vez o muertos a media faena."""

import os
import random
import shutil
import signal
import sqlite3
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from enlace.store import SearchState, migrations, open_database
from tests.crash.forks import IGNORE_FORK_WARNING, start_child, wait_for

pytestmark = pytest.mark.filterwarnings(IGNORE_FORK_WARNING)
SLOW = "".join(f"CREATE TABLE t{n} (x INTEGER) STRICT;\nINSERT INTO t{n} VALUES ({n});\n" for n in range(60))


def spend(path: Path, times: int = 1) -> None:
    with closing(open_database(path)) as database:
        for _ in range(times):
            assert SearchState(database).spend("brave", "2026-12", 10**9)


def spent(path: Path) -> int:
    with closing(open_database(path)) as database:
        return SearchState(database).spent("brave", "2026-12")


def at_once(action: Callable[[], object], count: int) -> list[int]:
    """Los códigos de salida de `count` procesos que hacen lo mismo y salen a la vez."""
    waiting, go = os.pipe()

    def wait_and_act() -> None:
        os.close(go)
        os.read(waiting, 1)  # vuelve cuando el padre cierra
        action()

    children = [start_child(wait_and_act) for _ in range(count)]
    os.close(go)
    os.close(waiting)
    return [wait_for(child) for child in children]


@pytest.fixture
def newer(tmp_path: Path) -> Path:
    """La carpeta de migraciones de un ENLACE que tiene una más."""
    folder = tmp_path / "migraciones"
    folder.mkdir()
    (folder / "0001_x.sql").write_text(migrations.scripts()[0].read_text())
    (folder / "0002_x.sql").write_text(SLOW)
    return folder


def test_several_processes_open_a_new_house_at_once(tmp_path: Path, long_run: bool) -> None:
    for number in range(200 if long_run else 20):
        path = tmp_path / str(number) / "household.db"
        assert at_once(lambda path=path: spend(path, 3), 6) == [0] * 6
        assert spent(path) == 18


def test_several_processes_upgrade_at_once_and_one_copy_is_enough(
    tmp_path: Path, newer: Path, monkeypatch: pytest.MonkeyPatch, long_run: bool
) -> None:
    for number in range(100 if long_run else 8):
        path = tmp_path / str(number) / "household.db"
        spend(path)
        with monkeypatch.context() as patched:
            patched.setattr(migrations, "_FOLDER", newer)
            assert at_once(lambda path=path: spend(path), 5) == [0] * 5
            assert spent(path) == 6
        (copy,) = (path.parent / "backups").iterdir()
        with closing(sqlite3.connect(copy)) as before:
            assert before.execute("PRAGMA user_version").fetchone() == (1,)
            assert before.execute("SELECT spent FROM search_budget").fetchone() == (1,)


def test_killed_at_any_moment_of_an_upgrade_it_opens_and_ends_it(
    tmp_path: Path, newer: Path, monkeypatch: pytest.MonkeyPatch, long_run: bool
) -> None:
    spend(tmp_path / "household.db", 7)
    monkeypatch.setattr(migrations, "_FOLDER", newer)
    path = tmp_path / "copia" / "household.db"
    chance = random.Random(7)
    seen = set()
    longest = 0.02
    for _ in range(300 if long_run else 30):
        shutil.rmtree(path.parent, ignore_errors=True)
        path.parent.mkdir()
        shutil.copy(tmp_path / "household.db", path)
        child = start_child(lambda: open_database(path))
        time.sleep(chance.uniform(0, longest))
        os.kill(child, signal.SIGKILL)
        wait_for(child)
        with closing(sqlite3.connect(path)) as connection:
            (version,) = connection.execute("PRAGMA user_version").fetchone()
            (tables,) = connection.execute("SELECT count(*) FROM sqlite_schema WHERE name GLOB 't[0-9]*'").fetchone()
        assert (version, tables) in {(1, 0), (2, 60)}
        seen.add(version)
        longest *= 0.7 if version == 2 else 1.3  # que caigan unas a tiempo y otras tarde, vaya como vaya la máquina
        assert spent(path) == 7
        (copy, *_) = (path.parent / "backups").iterdir()
        assert copy.suffix == ".db"
    assert seen == {1, 2}


def test_what_was_acknowledged_survives_a_kill(tmp_path: Path, long_run: bool) -> None:
    path = tmp_path / "household.db"
    chance = random.Random(7)
    kept = 0
    for _ in range(200 if long_run else 20):
        reading, writing = os.pipe()

        def write(writing: int = writing) -> None:
            with closing(open_database(path)) as database:
                while SearchState(database).spend("brave", "2026-12", 10**9):
                    os.write(writing, b".")

        child = start_child(write)
        os.close(writing)
        kept += len(os.read(reading, 1))
        time.sleep(chance.uniform(0, 0.02))
        os.kill(child, signal.SIGKILL)
        wait_for(child)
        while more := os.read(reading, 1 << 16):
            kept += len(more)
        os.close(reading)
        found = spent(path)
        assert found in (kept, kept + 1)
        kept = found
