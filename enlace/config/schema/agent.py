"""Capa `agent`: lo que el agente puede usar fuera de la casa y con qué límites."""

from typing import Literal, Self
from urllib.parse import urlsplit

from pydantic import Field, PositiveInt, field_validator, model_validator

from enlace.config.schema.base import BrokenRule, Layer, PathText

BackendName = Literal["duckduckgo", "brave", "searxng"]
Role = Literal["primary", "fallback"]
Region = Literal["es-419", "es-AR", "es-CL", "es-CO", "es-ES", "es-MX", "es-PE", "es-US", "es-VE"]
SafeSearch = Literal["off", "moderate", "strict"]
TimeRange = Literal["day", "week", "month", "year"]


class Backend(Layer):
    """Un eslabón de la cadena de búsqueda."""

    role: Role = Field(description="Sin el principal no se arranca; un suplente al que le falta algo se deja fuera.")
    backend: BackendName
    seconds_between_requests: float = Field(ge=0, description="Para toda la casa, contando desde que acaba cada una.")
    monthly_requests: PositiveInt | None = Field(None, description="Tope al mes, para los servicios que cobran.")
    url: str | None = Field(None, description="searxng: dónde está el tuyo. En los demás, otra dirección que la suya.")
    honours_safe_search: bool | None = Field(
        None, description="Solo searxng: true si todos los motores que usa el tuyo respetan la búsqueda segura."
    )

    @field_validator("url")
    @classmethod
    def _is_an_origin(cls, url: str | None) -> str | None:
        if url is None:
            return None
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname or "@" in parts.netloc:
            raise ValueError("se esperaba http://… o https://…, sin usuario ni contraseña")
        if parts.query or parts.fragment or not url.isprintable() or " " in url:
            raise ValueError("se esperaba solo la dirección, sin «?», «#» ni espacios")
        _ = parts.port  # ValueError si no es un puerto
        return url.rstrip("/")

    @model_validator(mode="after")
    def _searxng_says_where_it_is_and_what_it_honours(self) -> Self:
        is_own = self.backend == "searxng"
        if is_own and self.url is None:
            raise BrokenRule("falta «url», que searxng necesita", "backend")
        if is_own and self.honours_safe_search is None:
            raise BrokenRule("falta «honours_safe_search», que searxng necesita", "backend")
        if not is_own and self.honours_safe_search is not None:
            raise BrokenRule("solo vale con searxng", "honours_safe_search")
        return self


class Cooldown(Layer):
    """Cuánto descansa un buscador que se ha negado."""

    blocked_minutes: list[PositiveInt] = Field(
        min_length=1, description="Por cada bloqueo seguido; el último se repite."
    )
    limited_seconds: PositiveInt = Field(description="Tras un límite de ritmo que no dice cuánto esperar.")


class Cache(Layer):
    """Cuánto valen las respuestas guardadas; los fallos no se guardan nunca."""

    ok_hours: float = Field(ge=0)
    no_results_minutes: float = Field(ge=0)
    max_entries: PositiveInt


class Search(Layer):
    """La búsqueda en internet: una cadena en orden, el principal y sus suplentes."""

    region: Region
    safe_search: SafeSearch
    max_results: PositiveInt
    max_wait_seconds: float = Field(ge=0, description="Lo más que se espera el turno de un buscador antes de seguir.")
    chain: list[Backend] = Field(min_length=1)
    cooldown: Cooldown
    cache: Cache

    @model_validator(mode="after")
    def _one_primary_and_it_goes_first(self) -> Self:
        names = [link.backend for link in self.chain]
        repeated = sorted({name for name in names if names.count(name) > 1})
        if repeated:
            raise BrokenRule(f"está dos veces en la cadena: {', '.join(repeated)}", "chain")
        if any(link.role == "primary" for link in self.chain[1:]):
            raise BrokenRule("solo el primero de la cadena puede ser el principal (role: primary)", "chain")
        return self


class Web(Layer):
    """Cómo se sale a internet: un solo cliente, con topes."""

    user_agent: str = Field(min_length=1, pattern=r"^[ -~]+$")
    timeout_seconds: float = Field(gt=0, description="De cada petición entera, redirecciones incluidas.")
    max_bytes: PositiveInt = Field(description="De la respuesta, ya descomprimida.")
    max_redirects: int = Field(ge=0)
    ca_file: PathText | None = Field(description="Autoridades de certificación propias (PEM); null, las del sistema.")


class Page(Layer):
    """Leer una página."""

    max_characters: PositiveInt = Field(description="Del texto principal; lo que sobra se corta y se dice.")
    max_pdf_pages: PositiveInt


class Agent(Layer):
    """El agente de una casa."""

    search: Search
    web: Web
    page: Page
