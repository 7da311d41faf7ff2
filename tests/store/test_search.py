"""El estado compartido de la búsqueda, contra un modelo de juguete, y entre procesos de verdad."""

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule

from enlace.store import Database, open_database
from enlace.store.search import Pause, SearchState

KEYS = st.sampled_from(["a", "b", "c", "ñ", "'; DROP TABLE search_cache; --"])
MOST = 3


@pytest.fixture
def state(tmp_path: Path) -> Iterator[SearchState]:
    database = open_database(tmp_path / "household.db")
    yield SearchState(database)
    database.close()


class Model(RuleBasedStateMachine):
    """Memoria, turnos, descansos y cupos hacen lo mismo que unos diccionarios."""

    database: Database

    @initialize()
    def start(self) -> None:
        self.folder = tempfile.TemporaryDirectory()
        self.database = open_database(Path(self.folder.name) / "household.db")
        self.state = SearchState(self.database)
        self.now = 1000.0
        self.order = 0
        self.cache: dict[str, tuple[float, float, str]] = {}
        self.pauses: dict[str, Pause] = {}
        self.budget: dict[tuple[str, str], int] = {}
        self.turns: dict[str, tuple[str | None, float, float]] = {}
        self.tokens: list[tuple[str, str]] = []

    @rule(seconds=st.floats(0.1, 50))
    def wait(self, seconds: float) -> None:
        self.now += seconds

    @rule(key=KEYS, answer=st.text(max_size=5), seconds=st.floats(-5, 100))
    def remember(self, key: str, answer: str, seconds: float) -> None:
        self.now += 0.001  # dos guardadas a la vez se irían en cualquier orden
        self.state.remember(key, answer, now=self.now, expires_at=self.now + seconds, max_entries=MOST)
        self.cache[key] = (self.now, self.now + seconds, answer)
        alive = {k: v for k, v in self.cache.items() if v[1] > self.now}
        self.cache = dict(sorted(alive.items(), key=lambda item: -item[1][0])[:MOST])

    @rule(key=KEYS)
    def recall(self, key: str) -> None:
        kept = self.cache.get(key)
        assert self.state.cached(key, self.now) == (kept[2] if kept and kept[1] > self.now else None)

    @rule(service=KEYS, seconds=st.floats(-5, 50), strikes=st.integers(0, 5), reason=st.text(max_size=5))
    def pause(self, service: str, seconds: float, strikes: int, reason: str) -> None:
        self.pauses[service] = Pause(self.now + seconds, "bloqueado", reason, strikes)
        self.state.pause(service, self.pauses[service])

    @rule(service=KEYS)
    def forgive(self, service: str) -> None:
        self.pauses.pop(service, None)
        self.state.forgive(service)

    @rule(service=KEYS)
    def look(self, service: str) -> None:
        kept = self.pauses.get(service)
        assert self.state.pause_of(service, self.now) == (kept if kept and kept.until > self.now else None)
        assert self.state.strikes(service) == (kept.strikes if kept else 0)

    @rule(service=KEYS, month=st.sampled_from(["2026-12", "2027-01"]), limit=st.integers(0, 4))
    def spend(self, service: str, month: str, limit: int) -> None:
        used = self.budget.get((service, month), 0)
        assert self.state.spend(service, month, limit) == (used < limit)
        self.budget[service, month] = used + (used < limit)
        assert self.state.spent(service, month) == self.budget[service, month]

    @rule(service=KEYS, lease=st.floats(1, 20))
    def take_turn(self, service: str, lease: float) -> None:
        token, until, next_at = self.turns.get(service, (None, 0.0, 0.0))
        turn = self.state.take_turn(service, self.now, lease)
        is_free = (token is None or until <= self.now) and next_at <= self.now
        assert (turn.wait == 0) == is_free
        if is_free:
            self.turns[service] = (turn.token, self.now + lease, next_at)
            self.tokens.append((service, turn.token))

    @precondition(lambda self: self.tokens)
    @rule(data=st.data(), interval=st.floats(0, 10))
    def end_turn(self, data: st.DataObject, interval: float) -> None:
        service, token = data.draw(st.sampled_from(self.tokens))
        holder, until, next_at = self.turns[service]
        self.state.end_turn(service, token, self.now, interval)
        self.turns[service] = (None if holder == token else holder, until, max(next_at, self.now + interval))

    def teardown(self) -> None:
        if hasattr(self, "database"):
            self.database.close()
            self.folder.cleanup()


TestModel = Model.TestCase
TestModel.settings = settings(max_examples=40, stateful_step_count=30, deadline=None)


def test_one_at_a_time_and_keeping_the_distance(state: SearchState) -> None:
    first = state.take_turn("duck", 100.0, 15.0)
    assert first.wait == 0
    assert state.take_turn("duck", 101.0, 15.0).wait > 0
    assert state.take_turn("otro", 101.0, 15.0).wait == 0
    state.end_turn("duck", first.token, 102.0, 2.0)
    assert state.take_turn("duck", 103.0, 15.0).wait == pytest.approx(1.0)
    assert state.take_turn("duck", 104.0, 15.0).wait == 0


def test_the_turn_of_who_died_expires_and_cannot_be_given_back_by_another(state: SearchState) -> None:
    dead = state.take_turn("duck", 100.0, 15.0)
    assert state.take_turn("duck", 114.9, 15.0).wait > 0
    alive = state.take_turn("duck", 115.1, 15.0)
    assert alive.wait == 0
    state.end_turn("duck", dead.token, 116.0, 2.0)
    assert state.take_turn("duck", 119.0, 15.0).wait > 0, "sigue siendo de quien lo tiene"
    state.end_turn("duck", alive.token, 120.0, 2.0)
    assert state.take_turn("duck", 122.1, 15.0).wait == 0


def test_a_clock_that_goes_back_does_not_block_the_house(state: SearchState) -> None:
    turn = state.take_turn("duck", 1_000_000.0, 15.0)
    state.end_turn("duck", turn.token, 1_000_001.0, 2.0)
    assert 0 < state.take_turn("duck", 500.0, 15.0).wait <= 2.0
    turn = state.take_turn("duck", 502.1, 15.0)
    assert turn.wait == 0
    assert state.take_turn("duck", 10.0, 15.0).wait > 0
    assert state.take_turn("duck", 26.0, 15.0).wait == 0


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.tuples(st.floats(0, 4e9), st.booleans()), min_size=1, max_size=8))
def test_whatever_the_clock_does_the_turn_comes_in_bounded_time(
    state: SearchState, clock: list[tuple[float, bool]]
) -> None:
    lease, interval = 15.0, 2.0
    for now, gives_it_back in clock:
        waited = 0.0
        while (turn := state.take_turn("duck", now + waited, lease)).wait:
            waited += turn.wait
            assert waited <= 60.0 + lease + interval + 0.1
        if gives_it_back:
            state.end_turn("duck", turn.token, now + waited, interval)


def test_who_waits_for_the_turn_does_not_wear_the_disk_out(tmp_path: Path) -> None:
    database = open_database(tmp_path / "household.db")
    state = SearchState(database)
    state.take_turn("duck", 100.0, 15.0)
    log = tmp_path / "household.db-wal"
    before = log.stat().st_size
    assert all(state.take_turn("duck", 100.0 + number / 20, 15.0).wait for number in range(200))
    assert log.stat().st_size == before
    database.close()


def test_what_was_kept_with_a_wrong_clock_does_not_push_the_rest_out(state: SearchState) -> None:
    for number in range(3):
        state.remember(f"futura {number}", "x", now=4e9, expires_at=5e9, max_entries=3)
    for number in range(3):
        state.remember(f"buena {number}", "y", now=1000.0 + number, expires_at=2000.0, max_entries=3)
    assert all(state.cached(f"buena {number}", 1010.0) == "y" for number in range(3))


def test_what_was_kept_in_the_future_is_not_trusted(state: SearchState) -> None:
    state.remember("a", "x", now=1000.0, expires_at=2000.0, max_entries=9)
    assert state.cached("a", 999.0) is None


SEARCHER = """
import json, sys, time
from pathlib import Path
from enlace.store import open_household
from enlace.store.search import SearchState
home, name, count, interval = sys.argv[1], sys.argv[2], int(sys.argv[3]), float(sys.argv[4])
state = SearchState(open_household(Path(home)))
for number in range(count):
    while (turn := state.take_turn("duck", time.time(), 5.0)).wait:
        time.sleep(min(turn.wait, 0.01))
    start = time.time()
    time.sleep(0.001)
    end = time.time()
    state.end_turn("duck", turn.token, end, interval)
    print(json.dumps([name, number, start, end]), flush=True)
"""


def test_several_processes_never_break_the_rule_and_lose_nothing(tmp_path: Path) -> None:
    count, interval = 40, 0.02
    command = [sys.executable, "-c", SEARCHER, str(tmp_path)]
    children = [
        subprocess.Popen([*command, name, str(count), str(interval)], stdout=subprocess.PIPE, text=True)
        for name in "ab"
    ]
    turns = [json.loads(line) for child in children for line in child.communicate(timeout=100)[0].splitlines()]
    assert sorted((name, number) for name, number, *_ in turns) == [(n, k) for n in "ab" for k in range(count)]
    turns.sort(key=lambda turn: turn[2])
    assert all(later[2] - earlier[3] >= interval for earlier, later in pairwise(turns))


def test_a_process_killed_in_its_turn_does_not_stop_the_house(tmp_path: Path) -> None:
    holding = (
        "import sys, time; from pathlib import Path; from enlace.store import open_household\n"
        "from enlace.store.search import SearchState\n"
        "state = SearchState(open_household(Path(sys.argv[1])))\n"
        "assert state.take_turn('duck', time.time(), 0.5).wait == 0\n"
        "print('mío', flush=True); time.sleep(60)"
    )
    child = subprocess.Popen([sys.executable, "-c", holding, str(tmp_path)], stdout=subprocess.PIPE, text=True)
    assert child.stdout and child.stdout.readline() == "mío\n"
    child.kill()
    child.communicate()
    database = open_database(tmp_path / "household.db")
    state, deadline = SearchState(database), time.time() + 10
    while state.take_turn("duck", time.time(), 0.5).wait:
        assert time.time() < deadline
        time.sleep(0.02)
    database.close()
