"""DuckDuckGo sin clave ni cuenta: la página sin JavaScript y, de repuesto, la ligera. Solo la primera hoja."""

import re
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from urllib.parse import parse_qs, urlsplit

from lxml import html

from enlace.agent.tools.search.outcome import Outcome, Reply, Request
from enlace.agent.tools.search.query import quote_words, shorten
from enlace.agent.tools.search.results import results_from, retry_after, unknown_format, unreachable
from enlace.agent.web import WebClient, WebError, WebResponse, parse_html
from enlace.config.schema import Region, SafeSearch, TimeRange

ENDPOINT = "https://html.duckduckgo.com/html/"
LITE_ENDPOINT = "https://lite.duckduckgo.com/lite/"
LONGEST_QUERY = 499
REGIONS: Mapping[Region, str] = MappingProxyType(
    {
        "es-419": "xl-es",
        "es-AR": "ar-es",
        "es-CL": "cl-es",
        "es-CO": "co-es",
        "es-ES": "es-es",
        "es-MX": "mx-es",
        "es-PE": "pe-es",
        "es-US": "us-es",
        "es-VE": "ve-es",
    }
)
SAFE_SEARCH: Mapping[SafeSearch, str] = MappingProxyType({"strict": "1", "moderate": "-1", "off": "-2"})
TIME_RANGES: Mapping[TimeRange, str] = MappingProxyType({"day": "d", "week": "w", "month": "m", "year": "y"})

# «!w mate» y «mate w!» llevan a otra página, y «\\mate», al primer resultado.
_SHORTCUT = re.compile(r"[!\\].*|[^¡].*!")
# Solo en atributos: en el texto puede aparecer porque es lo que se buscaba.
_CHALLENGE = re.compile(r"anomaly|challenge-form|anomalyDetectionBlock", re.IGNORECASE)
_ADS = "result--ad"
_OWN_HOST = re.compile(r"(?:[\w-]+\.)*duckduckgo\.com", re.ASCII)

Found = tuple[str, str, str]


@dataclass(frozen=True)
class DuckDuckGo:
    """La página sin JavaScript (POST)."""

    client: WebClient
    endpoint: str = ENDPOINT

    name = "duckduckgo"

    def search(self, request: Request) -> Reply:
        """Pregunta una vez."""
        return _ask(self.client, self.endpoint, request)


@dataclass(frozen=True)
class DuckDuckGoLite:
    """La página ligera: la misma búsqueda en una tabla más simple."""

    client: WebClient
    endpoint: str = LITE_ENDPOINT

    name = "duckduckgo-lite"

    def search(self, request: Request) -> Reply:
        """Pregunta una vez."""
        return _ask(self.client, self.endpoint, request)


def form(request: Request) -> dict[str, str]:
    """Los campos de la petición. La búsqueda segura va siempre escrita."""
    safe = SAFE_SEARCH[request.safe_search]
    text = shorten(quote_words(request.text, _SHORTCUT), characters=LONGEST_QUERY)
    fields = {"q": text, "b": "", "kl": REGIONS[request.region], "kp": safe}
    return {**fields, "df": TIME_RANGES[request.time_range]} if request.time_range else fields


def parse(status: int, headers: Mapping[str, str], text: str) -> Reply:
    """Lo que dice una página, de cualquiera de las dos clases.

    El orden importa: si hay resultados es un éxito, diga lo que diga el resto de la página.
    """
    if status in (403, 418, 429) or status >= 500:
        return _refused(status, headers)
    page = parse_html(text)
    if page is None:
        return unknown_format(f"la página llega vacía o no es HTML (estado {status})")
    results = results_from((*_html_results(page), *_lite_results(page)))
    if results:
        return Reply(Outcome.OK, results)
    if _says_nothing_found(page):
        return Reply(Outcome.NO_RESULTS)
    if _is_challenge(page):
        return Reply(Outcome.BLOCKED, reason="pide demostrar que no eres un robot")
    return unknown_format(f"la página no es como se esperaba (estado {status}, {len(text)} caracteres)")


def _ask(client: WebClient, endpoint: str, request: Request) -> Reply:
    fields = form(request)
    headers = {
        "Accept-Language": f"{request.region},es;q=0.9",
        "Referer": endpoint,
        # Las preferencias de DuckDuckGo son cookies; las de la dirección ganan, pero así van por los dos lados.
        "Cookie": f"kl={fields['kl']}; p={fields['kp']}",
    }
    try:
        response: WebResponse = client.post(endpoint, fields, headers=headers)
    except WebError as error:
        return unreachable(error)
    return parse(response.status, response.headers, response.text())


def _refused(status: int, headers: Mapping[str, str]) -> Reply:
    if status == 429:
        wait = retry_after(headers.get("retry-after", ""), time.time())
        return Reply(Outcome.LIMIT, reason="demasiadas peticiones seguidas (estado 429)", retry_after=wait)
    if status in (403, 418):
        return Reply(Outcome.BLOCKED, reason=f"se niega a contestar (estado {status})")
    return Reply(Outcome.NETWORK, reason=f"el servicio está averiado (estado {status})")


def _html_results(page: html.HtmlElement) -> Iterator[Found]:
    for block in page.iter("div"):
        classes = _classes(block)
        if "result" not in classes or _ADS in classes or "result--no-result" in classes:
            continue
        link = next((each for each in block.iter("a") if "result__a" in _classes(each)), None)
        snippet = next((each for each in block.iter() if "result__snippet" in _classes(each)), None)
        if link is not None and (url := _target(link.get("href") or "")):
            yield _text(link), url, "" if snippet is None else _text(snippet)


def _lite_results(page: html.HtmlElement) -> Iterator[Found]:
    rows = [row for row in page.iter("tr")]
    for number, row in enumerate(rows):
        link = next((each for each in row.iter("a") if "result-link" in _classes(each)), None)
        if link is None or "result-sponsored" in _classes(row) or not (url := _target(link.get("href") or "")):
            continue
        following = rows[number + 1].iter("td") if number + 1 < len(rows) else iter(())
        snippet = next((each for each in following if "result-snippet" in _classes(each)), None)
        yield _text(link), url, "" if snippet is None else _text(snippet)


def _target(href: str) -> str:
    """A dónde lleva un enlace, sin la redirección de DuckDuckGo; vacío si es un anuncio."""
    for _ in range(2):  # un anuncio puede ir dentro de la redirección
        try:
            parts = urlsplit(href.strip())
        except ValueError:
            return ""
        own = not parts.netloc or _OWN_HOST.fullmatch(parts.hostname or "")
        if own and parts.path == "/y.js":
            return ""
        if not (own and parts.path == "/l/"):
            return href
        href = parse_qs(parts.query).get("uddg", [""])[0]
    return href


def _says_nothing_found(page: html.HtmlElement) -> bool:
    marks = ("result--no-result", "no-results")
    return any(mark in _classes(each) for each in page.iter() for mark in marks)


def _is_challenge(page: html.HtmlElement) -> bool:
    names = ("class", "id", "action")
    return any(_CHALLENGE.search(str(each.get(name) or "")) for each in page.iter() for name in names)


def _classes(element: html.HtmlElement) -> list[str]:
    return (element.get("class") or "").split()


def _text(element: html.HtmlElement) -> str:
    return " ".join(str(element.text_content()).split())
