"""La API de búsqueda de Brave, con clave."""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from pydantic import SecretStr

from enlace.agent.tools.search.documents import objects, read_object, text_of
from enlace.agent.tools.search.outcome import Outcome, Reply, Request
from enlace.agent.tools.search.query import shorten
from enlace.agent.tools.search.results import results_from, unknown_format, unreachable
from enlace.agent.web import WebClient, WebError
from enlace.config.schema import Region, TimeRange

ENDPOINT = "https://api.search.brave.com/res/v1/web/search"
LONGEST_QUERY, MOST_WORDS, MOST_RESULTS = 400, 50, 20
# País e idioma de la interfaz. Brave no tiene todos los países: en los que faltan se busca en español y sin país.
REGIONS: Mapping[Region, tuple[str, str]] = MappingProxyType(
    {
        "es-419": ("ALL", "es-MX"),
        "es-AR": ("AR", "es-AR"),
        "es-CL": ("CL", "es-CL"),
        "es-CO": ("ALL", "es-MX"),
        "es-ES": ("ES", "es-ES"),
        "es-MX": ("MX", "es-MX"),
        "es-PE": ("ALL", "es-MX"),
        "es-US": ("US", "es-US"),
        "es-VE": ("ALL", "es-MX"),
    }
)
TIME_RANGES: Mapping[TimeRange, str] = MappingProxyType({"day": "pd", "week": "pw", "month": "pm", "year": "py"})


@dataclass(frozen=True)
class Brave:
    """Brave. La clave va en una cabecera y no sale en ningún texto."""

    client: WebClient
    key: SecretStr
    endpoint: str = ENDPOINT

    name = "brave"

    def search(self, request: Request) -> Reply:
        """Pregunta una vez."""
        headers = {"X-Subscription-Token": self.key.get_secret_value(), "Accept": "application/json"}
        try:
            response = self.client.get(self.endpoint, params=params(request), headers=headers, redirects=False)
        except WebError as error:
            return unreachable(error)
        return parse(response.status, response.headers, response.text())


def params(request: Request) -> dict[str, str]:
    """Los parámetros de la petición. La búsqueda segura va siempre escrita."""
    country, interface = REGIONS[request.region]
    fields = {
        "q": shorten(request.text, characters=LONGEST_QUERY, words=MOST_WORDS),
        "count": str(min(request.max_results, MOST_RESULTS)),
        "country": country,
        "search_lang": "es",
        "ui_lang": interface,
        "safesearch": request.safe_search,
        "text_decorations": "false",
        "result_filter": "web",
    }
    return {**fields, "freshness": TIME_RANGES[request.time_range]} if request.time_range else fields


def parse(status: int, headers: Mapping[str, str], text: str) -> Reply:
    """Lo que dice una respuesta."""
    body = read_object(text)
    if status != 200:
        return _refused(status, headers, body or {})
    if body is None or body.get("type") != "search":
        return unknown_format(f"contesta algo que no es una búsqueda ({len(text)} caracteres)")
    web = body.get("web")
    if web is None:  # así dice Brave que no hay nada
        return Reply(Outcome.NO_RESULTS)
    listed = web.get("results") if isinstance(web, dict) else None
    if not isinstance(listed, list):
        return unknown_format("la respuesta no trae la lista de resultados")
    results = results_from(
        (text_of(each.get("title")), text_of(each.get("url")), text_of(each.get("description")))
        for each in objects(listed)
    )
    if listed and not results:
        return unknown_format("ningún resultado tiene título y dirección")
    return Reply(Outcome.OK, results) if results else Reply(Outcome.NO_RESULTS)


def _refused(status: int, headers: Mapping[str, str], body: Mapping[str, object]) -> Reply:
    if status in (401, 403):
        return Reply(Outcome.CREDENTIAL, reason=f"BRAVE_API_KEY no vale (estado {status})")
    if status == 402:
        return Reply(Outcome.LIMIT, reason="la cuenta de Brave no tiene saldo (estado 402)")
    if status == 429:
        return Reply(Outcome.LIMIT, reason="demasiadas peticiones a Brave (estado 429)", retry_after=_wait(headers))
    if status == 422:
        # Con una clave mal escrita, Brave contesta esto mismo.
        if "SUBSCRIPTION_TOKEN" in _code(body):
            return Reply(Outcome.CREDENTIAL, reason="BRAVE_API_KEY no vale (estado 422)")
        return unknown_format(f"Brave no admite {_rejected(body) or 'algo de lo pedido'} (estado 422)")
    if status >= 500:
        return Reply(Outcome.NETWORK, reason=f"el servicio está averiado (estado {status})")
    return unknown_format(f"contesta con el estado {status}")


def _error(body: Mapping[str, object]) -> dict[str, object]:
    error = body.get("error")
    return error if isinstance(error, dict) else {}


def _code(body: Mapping[str, object]) -> str:
    return text_of(_error(body).get("code"))


def _rejected(body: Mapping[str, object]) -> str:
    """Los nombres de los parámetros que no admite: son nuestros, no texto de fuera."""
    meta = _error(body).get("meta")
    errors = objects(meta.get("errors")) if isinstance(meta, dict) else []
    places = [each["loc"][-1] for each in errors if isinstance(each.get("loc"), list) and each["loc"]]
    return ", ".join(place for place in places if isinstance(place, str) and place.isidentifier())[:100]


def _wait(headers: Mapping[str, str]) -> float | None:
    """Lo que falta para la primera ventana agotada. Las cabeceras son listas: por segundo, por mes."""
    remaining = headers.get("x-ratelimit-remaining", "").split(",")
    reset = headers.get("x-ratelimit-reset", "").split(",")
    waits = [_seconds(wait) for left, wait in zip(remaining, reset, strict=False) if _seconds(left) == 0]
    known = [wait for wait in waits if wait is not None]
    return max(known) if known else None


def _seconds(text: str) -> float | None:
    value = text.strip()
    return float(value[:12]) if value.isdecimal() and value.isascii() else None
