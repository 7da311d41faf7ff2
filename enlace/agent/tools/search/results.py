"""De lo que dice un buscador a resultados limpios, y de lo que falla a su final."""

import re
from collections.abc import Iterable
from email.utils import parsedate_to_datetime
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

from enlace.agent.tools.search.outcome import Outcome, Reply, Result
from enlace.agent.untrusted import untrusted
from enlace.agent.web import TlsError, WebError

# Lo que solo sirve para seguir a quien pulsa.
_TRACKING = re.compile(r"utm_\w+|gclid|fbclid|msclkid|yclid|mc_[ce]id|igshid", re.ASCII)
_LONGEST_TITLE, _LONGEST_SNIPPET, _LONGEST_URL = 300, 1000, 2000


def results_from(found: Iterable[tuple[str, str, str]]) -> tuple[Result, ...]:
    """De (título, dirección, trozo) a resultados numerados desde 1, sin repetidos ni lo que no es de la web."""
    kept: dict[str, Result] = {}
    for title, address, snippet in found:
        url = clean_url(address)
        heading = untrusted(title[:_LONGEST_TITLE])
        if url and heading.text and url not in kept:
            source = (urlsplit(url).hostname or "").removeprefix("www.")
            kept[url] = Result(heading, url, untrusted(snippet[:_LONGEST_SNIPPET]), source, len(kept) + 1)
    return tuple(kept.values())


def clean_url(address: str) -> str:
    """La dirección sin lo que rastrea, o cadena vacía si no es de http ni https o no se entiende."""
    text = address.strip()
    if len(text) > _LONGEST_URL or not text.isprintable() or " " in text:
        return ""
    try:
        parts = urlsplit(text)
        if parts.scheme not in ("http", "https") or not parts.hostname or "@" in parts.netloc:
            return ""
    except ValueError:
        return ""
    pairs = parse_qsl(parts.query, keep_blank_values=True)
    clean = [(name, value) for name, value in pairs if not _TRACKING.fullmatch(name)]
    # Solo se reescribe si sobra algo: hay servidores que distinguen «?a» de «?a=».
    query = parts.query if len(clean) == len(pairs) else urlencode(clean)
    fragment = parts.fragment.partition(":~:")[0]
    return urlunsplit((parts.scheme, parts.netloc, parts.path or "/", query, fragment))


def unreachable(error: WebError) -> Reply:
    """El final de no tener respuesta."""
    return Reply(Outcome.TLS if isinstance(error, TlsError) else Outcome.NETWORK, reason=error.what)


def unknown_format(what: str) -> Reply:
    """El final de no entender lo que contestó."""
    return Reply(Outcome.UNKNOWN_FORMAT, reason=what)


def retry_after(text: str, now: float) -> float | None:
    """Los segundos de un Retry-After (RFC 9110, 10.2.3), que los da o da una fecha; None si no se entiende."""
    value = text.strip()
    if value.isdecimal() and value.isascii():
        return float(value[:12])
    try:
        return max(0.0, parsedate_to_datetime(value).timestamp() - now)
    except (ValueError, OverflowError, OSError):
        return None
