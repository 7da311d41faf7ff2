"""La cadena: pregunta a los buscadores en orden hasta que uno contesta, y cuenta por qué cayó cada uno."""

import hashlib
import json
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from typing import Self

from pydantic import TypeAdapter, ValidationError

from enlace.agent.tools.search.outcome import ANSWERED, Answer, Attempt, Outcome, Reply, Request, SearchBackend
from enlace.agent.tools.search.query import clean_query
from enlace.config import schema
from enlace.store import Database, Pause, SearchState

# Lo que un servicio que cuenta por meses puede pedir que se espere.
_MONTH_SECONDS = 31 * 86400.0
# Si un proceso muere a media petición, su turno caduca este rato después de que la petición tuviera que acabar.
_LEASE_MARGIN = 5.0
_LONGEST_NAP = 0.5
_ANSWER = TypeAdapter(Answer)


@dataclass(frozen=True)
class Link:
    """Un eslabón. only_after: finales del intento anterior tras los que se prueba; None, siempre."""

    backend: SearchBackend
    config: schema.Backend
    only_after: frozenset[Outcome] | None = None

    @property
    def service(self) -> str:
        """De quién son el turno, el descanso y el cupo."""
        return self.config.backend


@dataclass(frozen=True)
class Dropped:
    """Un suplente que se ha quedado fuera de la cadena, y por qué."""

    backend: str
    reason: str


@dataclass(frozen=True)
class LinkStatus:
    """Cómo está un buscador. paused_until: en segundos desde 1970; spent: peticiones de este mes."""

    backend: str
    role: schema.Role
    paused_until: float | None
    reason: str
    spent: int
    monthly_requests: int | None


class Chain:
    """Los buscadores que han quedado, en orden, y los que no (`dropped`). Se cierra al acabar (`with`)."""

    def __init__(
        self,
        links: tuple[Link, ...],
        dropped: tuple[Dropped, ...],
        config: schema.Agent,
        database: Database,
        *,
        clock: Callable[[], float] = time.time,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self.links = links
        self.dropped = dropped
        self.config = config
        self._database = database
        self._state = SearchState(database)
        self._clock = clock
        self._sleep = sleep

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._database.close()

    def search(self, text: str, *, time_range: schema.TimeRange | None = None) -> Answer:
        """Busca. La respuesta lleva todos los intentos; si han fallado todos, su final es el del último.

        UsageError si no hay nada que buscar.
        """
        search = self.config.search
        request = Request(clean_query(text), search.region, search.safe_search, time_range, search.max_results)
        key = hashlib.sha256(json.dumps(asdict(request), sort_keys=True).encode()).hexdigest()
        found = self._remembered(key)
        if found is not None:
            return found
        attempts: list[Attempt] = []
        for link in self.links:
            if link.only_after is not None and not (attempts and attempts[-1].outcome in link.only_after):
                continue
            attempt, reply = self.attempt(link, request)
            attempts.append(attempt)
            if reply.outcome in ANSWERED:
                answer = Answer(request.text, reply.outcome, reply.results, tuple(attempts))
                self._remember(key, answer)
                return answer
        return Answer(request.text, attempts[-1].outcome, (), tuple(attempts))

    def attempt(self, link: Link, request: Request) -> tuple[Attempt, Reply]:
        """Pregunta a un eslabón cuando le toca, y apunta lo que su respuesta enseña para las siguientes."""
        start = self._clock()
        reply = self._refusal(link) or self._ask_in_turn(link, request, start)
        milliseconds = max(0, round(1000 * (self._clock() - start)))
        return Attempt(link.backend.name, reply.outcome, milliseconds, reply.reason), reply

    def status(self) -> list[LinkStatus]:
        """Cómo está cada buscador de la cadena ahora mismo, sin preguntarles nada."""
        return [self._status(link) for link in self.links if link.only_after is None]

    def _status(self, link: Link) -> LinkStatus:
        pause = self._state.pause_of(link.service, self._clock())
        spent = self._state.spent(link.service, self._month())
        reason = pause.reason if pause else ""
        limit = link.config.monthly_requests
        if limit is not None and spent >= limit:
            reason = reason or _budget_spent(limit)
        until = pause.until if pause else None
        return LinkStatus(link.backend.name, link.config.role, until, reason, spent, limit)

    def _refusal(self, link: Link) -> Reply | None:
        pause = self._state.pause_of(link.service, self._clock())
        return _paused(pause) if pause else None

    def _ask_in_turn(self, link: Link, request: Request, start: float) -> Reply:
        token = self._wait_turn(link, start)
        if token is None:
            return Reply(Outcome.LIMIT, reason="otras búsquedas de la casa están esperando su turno")
        try:
            # Mientras se esperaba, otro proceso ha podido llevarse un bloqueo o el último cupo del mes.
            return self._refusal(link) or self._over_budget(link) or self._ask(link, request)
        finally:
            self._state.end_turn(link.service, token, self._clock(), link.config.seconds_between_requests)

    def _wait_turn(self, link: Link, start: float) -> str | None:
        """Con qué devolver el turno cuando llegue, o None si no merece la pena esperar más."""
        lease = self.config.web.timeout_seconds + _LEASE_MARGIN
        deadline = start + self.config.search.max_wait_seconds
        while (turn := self._state.take_turn(link.service, self._clock(), lease)).wait > 0:
            if self._clock() + turn.wait > deadline:
                return None
            self._sleep(min(turn.wait, _LONGEST_NAP))
        return turn.token

    def _over_budget(self, link: Link) -> Reply | None:
        limit = link.config.monthly_requests
        if limit is None or self._state.spend(link.service, self._month(), limit):
            return None
        return Reply(Outcome.LIMIT, reason=_budget_spent(limit))

    def _ask(self, link: Link, request: Request) -> Reply:
        reply = link.backend.search(request)
        now, service, cooldown = self._clock(), link.service, self.config.search.cooldown
        if reply.outcome in ANSWERED:
            self._state.forgive(service)
        elif reply.outcome is Outcome.BLOCKED:
            strikes = self._state.strikes(service) + 1
            minutes = cooldown.blocked_minutes[min(strikes, len(cooldown.blocked_minutes)) - 1]
            self._state.pause(service, Pause(now + 60 * minutes, reply.outcome, reply.reason, strikes))
        elif reply.outcome is Outcome.LIMIT:
            seconds = cooldown.limited_seconds if reply.retry_after is None else reply.retry_after
            # Que nadie apague un buscador de la casa pidiendo que se espere un año.
            longest = 60.0 * cooldown.blocked_minutes[-1] if link.config.monthly_requests is None else _MONTH_SECONDS
            until = now + min(max(seconds, 0.0), longest)
            self._state.pause(service, Pause(until, reply.outcome, reply.reason, self._state.strikes(service)))
        return replace(reply, results=reply.results[: request.max_results])

    def _remembered(self, key: str) -> Answer | None:
        text = self._state.cached(key, self._clock())
        if text is None:
            return None
        try:
            return replace(_ANSWER.validate_json(text), cached=True)
        except ValidationError:  # la guardó otra versión de ENLACE
            return None

    def _remember(self, key: str, answer: Answer) -> None:
        cache = self.config.search.cache
        seconds = 3600 * cache.ok_hours if answer.outcome is Outcome.OK else 60 * cache.no_results_minutes
        text = _ANSWER.dump_json(answer).decode()
        now = self._clock()
        self._state.remember(key, text, now=now, expires_at=now + seconds, max_entries=cache.max_entries)

    def _month(self) -> str:
        return datetime.fromtimestamp(self._clock(), UTC).strftime("%Y-%m")


def _paused(pause: Pause) -> Reply:
    until = datetime.fromtimestamp(pause.until).astimezone().strftime("%Y-%m-%d %H:%M")
    return Reply(Outcome(pause.outcome), reason=f"descansa hasta el {until}: {pause.reason}")


def _budget_spent(limit: int) -> str:
    return f"gastadas las {limit} peticiones de este mes (monthly_requests)"
