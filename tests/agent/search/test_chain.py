"""La cadena: cae por los fallos y no por los ceros honestos, respeta descansos y cupos, y cuenta cada intento."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path

import pytest

from enlace.agent.tools.search.chain import Chain, Link
from enlace.agent.tools.search.outcome import Outcome, Reply, Request, Result
from enlace.agent.untrusted import untrusted
from enlace.config import load_agent
from enlace.config.schema import Backend
from enlace.errors import UsageError
from enlace.store import open_household

ROOT = Path(__file__).parents[3]
FOUND = (Result(untrusted("Título"), "https://a.example/", untrusted("Un trozo"), "a.example", 1),)
OK, NOTHING = Reply(Outcome.OK, FOUND), Reply(Outcome.NO_RESULTS)
BLOCKED = Reply(Outcome.BLOCKED, reason="cree que es un robot")
FAILURES = [outcome for outcome in Outcome if outcome not in (Outcome.OK, Outcome.NO_RESULTS)]


@dataclass
class Clock:
    """La hora, que solo pasa cuando se duerme o se adelanta a mano."""

    now: float = 1_800_000_000.0

    def __call__(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds


@dataclass
class Scripted:
    """Un buscador que contesta lo que se le ha escrito, y apunta lo que se le pide."""

    name: str
    replies: list[Reply]
    asked: list[Request] = field(default_factory=list)

    def search(self, request: Request) -> Reply:
        self.asked.append(request)
        return self.replies.pop(0) if len(self.replies) > 1 else self.replies[0]


def configured(name: str, interval: float, monthly: int | None) -> Backend:
    """La configuración de un eslabón; el nombre, el que haga falta en la prueba."""
    return Backend.model_construct(
        role="fallback", backend=name, seconds_between_requests=interval, monthly_requests=monthly
    )


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def make(tmp_path: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch) -> Iterator[object]:
    monkeypatch.chdir(ROOT)
    opened: list[Chain] = []

    def build(
        *backends: Scripted, interval: float = 0.0, monthly: int | None = None, lite: Scripted | None = None
    ) -> Chain:
        links = [Link(backend, configured(backend.name, interval, monthly)) for backend in backends]
        if lite:
            after = frozenset({Outcome.UNKNOWN_FORMAT, Outcome.NETWORK})
            links.insert(1, Link(lite, links[0].config, only_after=after))
        chain = Chain(tuple(links), (), load_agent("casa"), open_household(tmp_path), clock=clock, sleep=clock.sleep)
        opened.append(chain)
        return chain

    yield build
    for chain in opened:
        chain.__exit__(None, None, None)


def outcomes(chain: Chain, text: str = "mate") -> list[tuple[str, str]]:
    return [(attempt.backend, attempt.outcome.value) for attempt in chain.search(text).attempts]


@pytest.mark.parametrize("failure", FAILURES)
def test_a_failure_falls_to_the_next_and_says_why(make, failure: Outcome) -> None:  # type: ignore[no-untyped-def]
    answer = make(Scripted("uno", [Reply(failure, reason="porque sí")]), Scripted("dos", [OK])).search("mate")
    assert [(each.backend, each.outcome, each.reason) for each in answer.attempts] == [
        ("uno", failure, "porque sí"),
        ("dos", Outcome.OK, ""),
    ]
    assert (answer.outcome, answer.results) == (Outcome.OK, FOUND)


def test_an_honest_zero_does_not_fall(make) -> None:  # type: ignore[no-untyped-def]
    second = Scripted("dos", [OK])
    answer = make(Scripted("uno", [NOTHING]), second).search("mate")
    assert (answer.outcome, answer.results, second.asked) == (Outcome.NO_RESULTS, (), [])


def test_when_all_fail_every_attempt_is_there(make) -> None:  # type: ignore[no-untyped-def]
    network = Reply(Outcome.NETWORK, reason="no hay red")
    answer = make(Scripted("uno", [BLOCKED]), Scripted("dos", [network])).search("mate")
    assert answer.outcome is Outcome.NETWORK
    assert [each.backend for each in answer.attempts] == ["uno", "dos"]


@pytest.mark.parametrize("failure", FAILURES)
def test_the_light_page_is_tried_only_when_the_other_was_not_understood_or_did_not_arrive(  # type: ignore[no-untyped-def]
    make, failure: Outcome
) -> None:
    lite = Scripted("uno-lite", [OK])
    chain = make(Scripted("uno", [Reply(failure)]), Scripted("dos", [OK]), lite=lite)
    tried = [name for name, _ in outcomes(chain)]
    needs_it = failure in (Outcome.UNKNOWN_FORMAT, Outcome.NETWORK)
    assert tried == (["uno", "uno-lite"] if needs_it else ["uno", "dos"])


def test_after_a_block_it_rests_longer_each_time_and_asks_nothing_meanwhile(make, clock: Clock) -> None:  # type: ignore[no-untyped-def]
    blocked = Scripted("uno", [BLOCKED])
    chain = make(blocked, Scripted("dos", [OK]))
    for number, minutes in enumerate([15, 60, 180, 180], 1):
        assert outcomes(chain, f"mate {number}") == [("uno", "bloqueado"), ("dos", "ok")]
        clock.now += 60 * minutes - 1
        rested = chain.search(f"otra {number}").attempts[0]
        assert (rested.outcome, rested.milliseconds) == (Outcome.BLOCKED, 0)
        assert "descansa hasta" in rested.reason and "robot" in rested.reason
        assert len(blocked.asked) == number
        clock.now += 2


def test_a_success_forgives_the_blocks(make, clock: Clock) -> None:  # type: ignore[no-untyped-def]
    chain = make(Scripted("uno", [BLOCKED, OK, BLOCKED]))
    chain.search("a")
    clock.now += 15 * 60 + 1
    assert chain.search("b").outcome is Outcome.OK
    chain.search("c")
    (status,) = chain.status()
    assert status.paused_until == pytest.approx(clock.now + 15 * 60)


@pytest.mark.parametrize(
    ("asked", "monthly", "seconds"),
    [(7.0, None, 7), (None, None, 180), (1e12, None, 180 * 60), (1e12, 99, 31 * 86400), (-5.0, None, 0)],
)
def test_a_limit_rests_what_the_service_asks_within_reason(  # type: ignore[no-untyped-def]
    make, clock: Clock, asked: float | None, monthly: int | None, seconds: float
) -> None:
    limited = Scripted("uno", [Reply(Outcome.LIMIT, reason="demasiadas", retry_after=asked), OK])
    chain = make(limited, monthly=monthly)
    assert chain.search("a").outcome is Outcome.LIMIT
    clock.now += seconds - 1
    if seconds:
        assert chain.search("b").attempts[0].reason.startswith("descansa")
    clock.now += 2
    assert chain.search("c").outcome is Outcome.OK


def test_good_answers_and_honest_zeros_are_remembered_and_failures_never(make, clock: Clock) -> None:  # type: ignore[no-untyped-def]
    good, empty = Scripted("uno", [OK]), Scripted("dos", [NOTHING])
    for backend, seconds in ((good, 24 * 3600), (empty, 600)):
        chain = make(backend)
        text = f"algo de {backend.name}"
        first = chain.search(text)
        clock.now += seconds - 1
        again = chain.search(text)
        assert (again.cached, again.results, again.attempts) == (True, first.results, first.attempts)
        assert len(backend.asked) == 1
        clock.now += 2
        assert not chain.search(text).cached
        assert len(backend.asked) == 2
    failing = Scripted("tres", [Reply(Outcome.NETWORK)])
    chain = make(failing)
    chain.search("x")
    chain.search("x")
    assert len(failing.asked) == 2


def test_what_is_remembered_depends_on_everything_that_is_asked(make) -> None:  # type: ignore[no-untyped-def]
    backend = Scripted("uno", [OK])
    chain = make(backend)
    chain.search("mate")
    chain.search("mate", time_range="week")
    chain.search("Mate")
    assert len(backend.asked) == 3


def test_the_monthly_budget_is_never_exceeded_and_starts_again_each_month(make, clock: Clock) -> None:  # type: ignore[no-untyped-def]
    paid, free = Scripted("pago", [OK]), Scripted("gratis", [OK])
    chain = make(paid, monthly=2)
    other = make(free)
    assert [chain.search(text).outcome.value for text in "abc"] == ["ok", "ok", "limite"]
    assert len(paid.asked) == 2
    assert "2 peticiones de este mes" in chain.status()[0].reason
    assert other.search("z").outcome is Outcome.OK
    clock.now += 31 * 86400
    assert chain.search("d").outcome is Outcome.OK


def test_requests_keep_their_distance(make, clock: Clock) -> None:  # type: ignore[no-untyped-def]
    moments: list[float] = []

    class Noting(Scripted):
        def search(self, request: Request) -> Reply:
            moments.append(clock.now)
            clock.now += 0.3
            return super().search(request)

    chain = make(Noting("uno", [OK]), interval=2.0)
    for text in "abcd":
        chain.search(text)
    assert all(later - earlier > 2.3 - 1e-6 for earlier, later in pairwise(moments))


def test_who_waits_too_long_goes_on_to_the_next(make, clock: Clock) -> None:  # type: ignore[no-untyped-def]
    chain = make(Scripted("uno", [OK]), Scripted("dos", [OK]), interval=60.0)
    chain.search("a")
    answer = chain.search("b")
    assert [(each.backend, each.outcome) for each in answer.attempts] == [
        ("uno", Outcome.LIMIT),
        ("dos", Outcome.OK),
    ]


def test_a_backend_that_breaks_gives_its_turn_back(make) -> None:  # type: ignore[no-untyped-def]
    class Broken(Scripted):
        def search(self, request: Request) -> Reply:
            super().search(request)
            raise RuntimeError("defecto")

    chain = make(Broken("uno", [OK]))
    for _ in range(2):
        with pytest.raises(RuntimeError, match="defecto"):
            chain.search("a")


def test_an_answer_kept_by_another_version_is_asked_again(make, monkeypatch: pytest.MonkeyPatch) -> None:  # type: ignore[no-untyped-def]
    backend = Scripted("uno", [OK])
    chain = make(backend)
    chain.search("mate")
    monkeypatch.setattr(type(chain._state), "cached", lambda *_: '{"otra": "forma"}')
    assert not chain.search("mate").cached
    assert len(backend.asked) == 2


@pytest.mark.parametrize("text", ["", "   ", "\x00\u200b\n"])
def test_nothing_to_search_is_refused_before_asking(make, text: str) -> None:  # type: ignore[no-untyped-def]
    backend = Scripted("uno", [OK])
    with pytest.raises(UsageError):
        make(backend).search(text)
    assert backend.asked == []


def test_no_more_results_than_asked(make) -> None:  # type: ignore[no-untyped-def]
    many = tuple(FOUND[0] for _ in range(30))
    assert len(make(Scripted("uno", [Reply(Outcome.OK, many)])).search("a").results) == 10
