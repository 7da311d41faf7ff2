"""Un SearXNG propio, sin clave."""

import re
import time
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from enlace.agent.tools.search.documents import objects, read_object, text_of
from enlace.agent.tools.search.outcome import Outcome, Reply, Request
from enlace.agent.tools.search.query import quote_words
from enlace.agent.tools.search.results import results_from, retry_after, unknown_format, unreachable
from enlace.agent.untrusted import untrusted
from enlace.agent.web import WebClient, WebError
from enlace.config.schema import Region, SafeSearch, TimeRange

REGIONS: Mapping[Region, str] = MappingProxyType(
    {
        "es-419": "es",
        "es-AR": "es-AR",
        "es-CL": "es-CL",
        "es-CO": "es-CO",
        "es-ES": "es-ES",
        "es-MX": "es-MX",
        "es-PE": "es-PE",
        "es-US": "es-US",
        "es-VE": "es-VE",
    }
)
SAFE_SEARCH: Mapping[SafeSearch, str] = MappingProxyType({"off": "0", "moderate": "1", "strict": "2"})
# No todos sus motores tienen «semana»: con «mes» no se pierde nada de lo pedido.
TIME_RANGES: Mapping[TimeRange, str] = MappingProxyType(
    {"day": "day", "week": "month", "month": "month", "year": "year"}
)
_NO_JSON = "no da JSON: en los ajustes de tu SearXNG, search.formats: [html, json]"
_ENGINES_NAMED = 5
# «!motor», «!!atajo», «:idioma» y «<segundos» cambian la petición, también la búsqueda segura de la casa.
_ORDER = re.compile(r"[!:<].*")


@dataclass(frozen=True)
class SearxNG:
    """Una instancia de SearXNG. url: la suya, sin «/search»."""

    client: WebClient
    url: str

    name = "searxng"

    def search(self, request: Request) -> Reply:
        """Pregunta una vez."""
        headers = {"Accept": "application/json"}
        try:
            response = self.client.get(f"{self.url}/search", params=params(request), headers=headers)
        except WebError as error:
            return unreachable(error)
        return parse(response.status, response.headers, response.text())


def params(request: Request) -> dict[str, str]:
    """Los parámetros de la petición. La búsqueda segura va siempre escrita."""
    fields = {
        "q": quote_words(request.text, _ORDER),
        "format": "json",
        "language": REGIONS[request.region],
        "safesearch": SAFE_SEARCH[request.safe_search],
        "categories": "general",
        "pageno": "1",
    }
    return {**fields, "time_range": TIME_RANGES[request.time_range]} if request.time_range else fields


def parse(status: int, headers: Mapping[str, str], text: str) -> Reply:
    """Lo que dice una respuesta. Sin resultados y con motores que no contestan es un bloqueo, no un «no hay nada»."""
    if status == 403:
        return unknown_format(f"{_NO_JSON} (estado 403)")
    if status == 429:
        wait = retry_after(headers.get("retry-after", ""), time.time())
        return Reply(Outcome.LIMIT, reason="tu SearXNG limita las peticiones (estado 429)", retry_after=wait)
    if status >= 500:
        return Reply(Outcome.NETWORK, reason=f"tu SearXNG está averiado (estado {status})")
    body = read_object(text)
    if status != 200 or body is None:
        return unknown_format(f"{_NO_JSON} (estado {status})")
    listed = body.get("results")
    if not isinstance(listed, list):
        return unknown_format("la respuesta no trae la lista de resultados")
    results = results_from(
        (text_of(each.get("title")), text_of(each.get("url")), text_of(each.get("content"))) for each in objects(listed)
    )
    if results:
        return Reply(Outcome.OK, results)
    if listed:
        return unknown_format("ningún resultado tiene título y dirección")
    engines = _unresponsive(body.get("unresponsive_engines"))
    if engines:
        return Reply(Outcome.BLOCKED, reason=f"no le contesta ningún motor: {engines}")
    return Reply(Outcome.NO_RESULTS)


def _unresponsive(value: object) -> str:
    pairs = [each for each in value if isinstance(each, list) and each] if isinstance(value, list) else []
    return ", ".join(untrusted(text_of(pair[0])[:40]).text or "?" for pair in pairs[:_ENGINES_NAMED])
