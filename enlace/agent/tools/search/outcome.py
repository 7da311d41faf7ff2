"""Lo que se pide a un buscador y lo que puede pasar: cada final tiene su nombre y ninguno se disfraza de éxito."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

from enlace.agent.untrusted import Untrusted
from enlace.config.schema import Region, SafeSearch, TimeRange


class Outcome(StrEnum):
    """Cómo acabó un intento."""

    OK = "ok"
    NO_RESULTS = "sin_resultados"
    BLOCKED = "bloqueado"
    UNKNOWN_FORMAT = "formato_desconocido"
    LIMIT = "limite"
    CREDENTIAL = "credencial"
    NETWORK = "red"
    TLS = "tls"


ANSWERED = frozenset({Outcome.OK, Outcome.NO_RESULTS})
"""Los finales honestos: que no haya nada también es una respuesta, y no hace caer al siguiente."""


@dataclass(frozen=True)
class Request:
    """Lo que se busca, ya limpio."""

    text: str
    region: Region
    safe_search: SafeSearch
    time_range: TimeRange | None
    max_results: int


@dataclass(frozen=True)
class Result:
    """Un resultado. url: la de destino, sin rastreo; source: su dominio; position: desde 1."""

    title: Untrusted
    url: str
    snippet: Untrusted
    source: str
    position: int


@dataclass(frozen=True)
class Reply:
    """Lo que contestó un buscador.

    reason: por qué, en una frase y sin secretos; vacía si fue bien. retry_after: segundos que pide esperar, si lo dice.
    """

    outcome: Outcome
    results: tuple[Result, ...] = ()
    reason: str = ""
    retry_after: float | None = None


@dataclass(frozen=True)
class Attempt:
    """Un intento de la cadena, para contar por qué se cayó cada eslabón."""

    backend: str
    outcome: Outcome
    milliseconds: int
    reason: str = ""


@dataclass(frozen=True)
class Answer:
    """La respuesta de la cadena. attempts: todos los intentos, en orden; cached: salió de la memoria de la casa."""

    query: str
    outcome: Outcome
    results: tuple[Result, ...]
    attempts: tuple[Attempt, ...]
    cached: bool = False


class SearchBackend(Protocol):
    """Un buscador: una petición, una respuesta con su final. No levanta errores de red: los devuelve."""

    @property
    def name(self) -> str:
        """Cómo se llama en los intentos."""

    def search(self, request: Request) -> Reply:
        """Pregunta una vez."""
