"""Cómo está la búsqueda: qué buscadores hay, cuáles han quedado fuera y cuáles descansan."""

from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any

from enlace.agent.tools.search.chain import Chain, Dropped, LinkStatus
from enlace.agent.tools.search.command import attempt_json, attempt_lines, dropped_line
from enlace.agent.tools.search.outcome import Attempt, Request
from enlace.errors.numerals import thousands

# Lo que se pregunta para comprobar que un buscador contesta.
PROBE = "home assistant"


@dataclass(frozen=True)
class SearchStatus:
    """links: los de la cadena, en orden; live: lo que ha contestado cada uno, si se les ha preguntado."""

    links: tuple[LinkStatus, ...]
    dropped: tuple[Dropped, ...]
    live: tuple[Attempt, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """Para programas."""
        return {
            "chain": [asdict(link) for link in self.links],
            "dropped": [asdict(each) for each in self.dropped],
            "live": [attempt_json(attempt) for attempt in self.live],
        }

    def render(self) -> str:
        """Una línea por buscador, y debajo las respuestas de verdad si las hay."""
        lines = [_link_line(link) for link in self.links]
        lines += [dropped_line(each) for each in self.dropped]
        if self.live:
            lines += ["", "preguntando de verdad:", attempt_lines(self.live)]
        return "\n".join(lines)


def search_status(chain: Chain, *, live: bool = False) -> SearchStatus:
    """Mira la cadena; con `live` hace además una petición de verdad a cada buscador, la página ligera incluida."""
    attempts: list[Attempt] = []
    if live:
        search = chain.config.search
        request = Request(PROBE, search.region, search.safe_search, None, search.max_results)
        attempts = [chain.attempt(link, request)[0] for link in chain.links]
    return SearchStatus(tuple(chain.status()), chain.dropped, tuple(attempts))


def _link_line(link: LinkStatus) -> str:
    state = "en la cadena"
    if link.paused_until is not None:
        until = datetime.fromtimestamp(link.paused_until).astimezone().strftime("%Y-%m-%d %H:%M")
        state = f"descansa hasta el {until}: {link.reason}"
    elif link.reason:
        state = link.reason
    mark = "⏸" if link.reason else "✓"
    limit = "" if link.monthly_requests is None else f" de {thousands(link.monthly_requests)}"
    spent = f"; este mes, {thousands(link.spent)}{limit} peticiones" if link.monthly_requests is not None else ""
    role = "principal" if link.role == "primary" else "suplente"
    return f"{mark} {link.backend} ({role}): {state}{spent}"
