"""La única puerta a internet: un cliente HTTP que mira a qué dirección va antes de conectarse."""

from enlace.agent.web.body import parse_html
from enlace.agent.web.client import Resolve, WebClient, WebResponse, system_resolve
from enlace.agent.web.errors import ForbiddenAddressError, NetworkError, TlsError, TooBigError, WebError

__all__ = [
    "ForbiddenAddressError",
    "NetworkError",
    "Resolve",
    "TlsError",
    "TooBigError",
    "WebClient",
    "WebError",
    "WebResponse",
    "parse_html",
    "system_resolve",
]
