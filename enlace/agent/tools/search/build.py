"""Construye la cadena de búsqueda: por aquí pasa quien quiera buscar, y aquí se leen las credenciales."""

import warnings
from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType

from enlace.agent.tools.search.brave import Brave
from enlace.agent.tools.search.chain import Chain, Dropped, Link
from enlace.agent.tools.search.duckduckgo import DuckDuckGo, DuckDuckGoLite
from enlace.agent.tools.search.outcome import Outcome
from enlace.agent.tools.search.searxng import SearxNG
from enlace.agent.web import WebClient
from enlace.config import require, schema
from enlace.errors import ConfigError, EnlaceError, Problem
from enlace.store import home_directory, open_household

# La versión ligera es otra página del mismo servicio: sirve cuando la primera no se entiende, no cuando se niega.
_LITE_AFTER = frozenset({Outcome.UNKNOWN_FORMAT, Outcome.NETWORK})

Build = Callable[[schema.Backend, WebClient], tuple[Link, ...]]


class DegradedChain(UserWarning):
    """La cadena se ha construido sin alguno de sus suplentes."""


def build_backend(config: schema.Agent, *, home: Path | None = None) -> Chain:
    """La cadena de esta configuración, con su estado en la base de datos del hogar (`home`, o la de ENLACE_HOME).

    ConfigError: al principal le falta su credencial o no puede cumplir lo que se pide, o no queda ninguno. Un suplente
    en el mismo caso se queda fuera: está en `Chain.dropped` y se avisa una vez (DegradedChain).
    """
    links: list[Link] = []
    dropped: list[Dropped] = []
    for link in config.search.chain:
        try:
            links += _link(link, config)
        except EnlaceError as error:
            if link.role == "primary":
                raise
            dropped.append(Dropped(link.backend, error.what))
    reasons = "; ".join(f"{each.backend} ({each.reason})" for each in dropped)
    if not links:
        raise ConfigError([Problem("search.chain", "", reasons)], what="no queda ningún buscador en la cadena")
    if dropped:
        warnings.warn(f"fuera de la cadena de búsqueda: {reasons}", DegradedChain, stacklevel=2)
    return Chain(tuple(links), tuple(dropped), config, open_household(home or home_directory()))


def _link(link: schema.Backend, config: schema.Agent) -> tuple[Link, ...]:
    if config.search.safe_search == "strict" and link.honours_safe_search is False:
        problem = Problem("search.chain", link.backend, "no todos sus motores respetan la búsqueda segura estricta")
        fix = "deja solo motores que la respeten y pon honours_safe_search: true, o quita ese buscador"
        raise ConfigError([problem], what=f"{link.backend} no puede buscar en modo estricto", fix=fix)
    client = WebClient(config.web, allowed_origins=[] if link.url is None else [link.url])
    return _BUILDERS[link.backend](link, client)


def _duckduckgo(link: schema.Backend, client: WebClient) -> tuple[Link, ...]:
    html, lite = DuckDuckGo(client), DuckDuckGoLite(client)
    if link.url is not None:
        html, lite = DuckDuckGo(client, f"{link.url}/html/"), DuckDuckGoLite(client, f"{link.url}/lite/")
    return Link(html, link), Link(lite, link, only_after=_LITE_AFTER)


def _brave(link: schema.Backend, client: WebClient) -> tuple[Link, ...]:
    key = require("brave_api_key")
    backend = Brave(client, key) if link.url is None else Brave(client, key, f"{link.url}/res/v1/web/search")
    return (Link(backend, link),)


def _searxng(link: schema.Backend, client: WebClient) -> tuple[Link, ...]:
    backend = SearxNG(client, link.url or "")
    return (Link(backend, link),)


_BUILDERS: Mapping[str, Build] = MappingProxyType({"duckduckgo": _duckduckgo, "brave": _brave, "searxng": _searxng})
