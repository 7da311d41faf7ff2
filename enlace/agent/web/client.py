"""El cliente: comprueba, se conecta a lo comprobado, y vuelve a comprobar en cada redirección."""

import errno
import queue
import re
import socket
import ssl
import threading
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from urllib.parse import urlencode

import httpcore2
import httpx2

from enlace.agent.web.address import is_public
from enlace.agent.web.body import decode, read_body
from enlace.agent.web.connection import Deadline, Pinned
from enlace.agent.web.errors import ForbiddenAddressError, NetworkError, TlsError, TooBigError, WebError
from enlace.config import schema
from enlace.errors import ConfigError, Problem

Resolve = Callable[[str, int], Sequence[str]]
"""Nombre y puerto → sus direcciones IP. OSError si no las tiene."""

Origin = tuple[str, str, int]

_PORTS = {"http": 80, "https": 443}
_REDIRECTS = {301, 302, 303, 307, 308}
_TOKEN = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")  # RFC 9110, 5.6.2
_CAUSES = {
    errno.ECONNREFUSED: "nadie atiende ahí",
    errno.ECONNRESET: "han cortado la conexión",
    errno.EPIPE: "han cortado la conexión",
    errno.ENETUNREACH: "esta máquina no tiene red hasta ahí",
    errno.EHOSTUNREACH: "no hay camino hasta ahí",
}


@dataclass(frozen=True)
class WebResponse:
    """Una respuesta entera. url: la final; headers: con los nombres en minúsculas; body: ya descomprimido."""

    url: str
    status: int
    headers: Mapping[str, str]
    body: bytes

    def text(self) -> str:
        """El cuerpo como texto; no falla nunca."""
        return decode(self.body, self.headers)


def system_resolve(host: str, port: int) -> list[str]:
    """Las direcciones de un nombre según el sistema, sin repetir."""
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(address[0]) for *_, address in found))


class WebClient:
    """Pide por http y https a direcciones públicas y por sus puertos. Se puede usar desde varios hilos.

    allowed_origins: orígenes exactos («http://127.0.0.1:8888») a los que se va aunque sean de casa, si los pide quien
    llama: que otro servidor redirija a ellos no basta. No mira proxies del entorno ni guarda cookies. ConfigError si
    web.ca_file no vale.
    """

    def __init__(
        self, config: schema.Web, *, allowed_origins: Collection[str] = (), resolve: Resolve = system_resolve
    ) -> None:
        self._config = config
        self._allowed = {_origin(_parse(origin)) for origin in allowed_origins}
        self._resolve = resolve
        self._tls = _tls_context(config.ca_file)

    def get(
        self,
        url: str,
        *,
        params: Mapping[str, str] | None = None,
        headers: Mapping[str, str] | None = None,
        redirects: bool = True,
    ) -> WebResponse:
        """Pide una dirección, siguiendo redirecciones si se quiere. Un estado de error también es una respuesta.

        WebError, en alguna de sus clases, si no hay respuesta.
        """
        target = _parse(url, params)
        deadline = Deadline(self._config.timeout_seconds)
        first, own_headers = _origin(target), dict(headers or {})
        allowed = first in self._allowed
        for _ in range(self._config.max_redirects + 1 if redirects else 1):
            response = self._send("GET", target, own_headers, b"", deadline, allowed)
            location = response.headers.get("location")
            if not (redirects and response.status in _REDIRECTS and location):
                return response
            target = _next(target, location)
            if (
                _origin(target) != first
            ):  # ni las cabeceras, que podrían llevar una clave, ni el permiso; tampoco si vuelve
                own_headers, allowed = {}, False
        raise NetworkError(f"{target.host} redirige demasiadas veces", where=target.host)

    def post(self, url: str, form: Mapping[str, str], *, headers: Mapping[str, str] | None = None) -> WebResponse:
        """Manda un formulario. No sigue redirecciones. WebError si no hay respuesta."""
        target = _parse(url)
        typed = {**(headers or {}), "Content-Type": "application/x-www-form-urlencoded"}
        try:
            content = urlencode(dict(form)).encode()
        except UnicodeError:
            raise WebError("el formulario lleva letras que no se pueden mandar", where=target.host) from None
        deadline = Deadline(self._config.timeout_seconds)
        return self._send("POST", target, typed, content, deadline, _origin(target) in self._allowed)

    def _send(
        self,
        method: str,
        url: httpx2.URL,
        headers: Mapping[str, str],
        content: bytes,
        deadline: Deadline,
        allowed: bool,
    ) -> WebResponse:
        _check_headers(headers, url.host)
        try:
            addresses = self._checked_addresses(url, deadline, allowed)
            with httpcore2.ConnectionPool(ssl_context=self._tls, network_backend=Pinned(addresses, deadline)) as pool:
                return self._exchange(pool, method, url, headers, content)
        except WebError:
            raise
        except httpcore2.TimeoutException as error:
            raise NetworkError(f"{url.host} no contesta a tiempo", where=url.host, timeout=True) from error
        except httpcore2.ProtocolError:
            # Su mensaje cita lo que llega, que puede repetir una clave de lo que se mandó: ni se enseña ni se encadena.
            raise NetworkError(f"no se entiende lo que contesta {url.host}, o llega cortado", where=url.host) from None
        except (httpcore2.NetworkError, OSError, UnicodeError) as error:
            raise _explain(url, error) from error

    def _exchange(
        self, pool: httpcore2.ConnectionPool, method: str, url: httpx2.URL, headers: Mapping[str, str], content: bytes
    ) -> WebResponse:
        sent = {
            "Host": url.netloc.decode("ascii"),
            "User-Agent": self._config.user_agent,
            "Accept-Encoding": "gzip",
            "Connection": "close",
            **headers,
        }
        if method == "POST":
            sent["Content-Length"] = str(len(content))
        target = httpcore2.URL(scheme=url.raw_scheme, host=url.raw_host, port=_port(url), target=url.raw_path)
        with pool.stream(method, target, headers=list(sent.items()), content=content) as response:
            received = {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in response.headers}
            encoding = received.get("content-encoding", "").strip().lower()
            limit = self._config.max_bytes
            if received.get("content-length", "").isdecimal() and int(received["content-length"][:20]) > limit:
                raise TooBigError(url.host, limit)
            body = read_body(response.iter_stream(), encoding, url.host, limit)
        return WebResponse(str(url), response.status, received, body)

    def _checked_addresses(self, url: httpx2.URL, deadline: Deadline, allowed: bool) -> Sequence[str]:
        """Las direcciones a las que se puede ir. ForbiddenAddressError si alguna no es de internet."""
        host, port = url.raw_host.decode("ascii"), _port(url)
        if not allowed and port not in _PORTS.values():
            raise ForbiddenAddressError(f"{url.host}:{port}", "por ese puerto no se sale")
        addresses = _in_time(lambda: self._resolve(host, port), deadline)
        if not addresses:
            raise NetworkError(f"no existe {url.host}", where=url.host)
        if not allowed and not all(is_public(address) for address in addresses):
            raise ForbiddenAddressError(url.host, "no es una dirección de internet")
        return addresses


def _parse(url: str, params: Mapping[str, str] | None = None) -> httpx2.URL:
    try:
        parsed = httpx2.URL(url)
        if params is not None:
            parsed = parsed.copy_merge_params(dict(params))
        _ = parsed.raw_host.decode("ascii"), parsed.port, parsed.raw_path
    except (httpx2.InvalidURL, ValueError, TypeError):
        raise ForbiddenAddressError("esa dirección", "no está bien escrita") from None
    if parsed.scheme not in _PORTS:
        raise ForbiddenAddressError("esa dirección", "solo se va por http y https")
    if not parsed.host:
        raise ForbiddenAddressError("esa dirección", "le falta el nombre del servidor")
    if parsed.userinfo:
        raise ForbiddenAddressError(parsed.host, "lleva un usuario o una contraseña dentro")
    return parsed


def _next(url: httpx2.URL, location: str) -> httpx2.URL:
    try:
        target = _parse(str(url.join(_as_utf8(location))))
    except (httpx2.InvalidURL, ValueError):
        raise ForbiddenAddressError(f"donde redirige {url.host}", "no está bien escrita") from None
    if url.scheme == "https" and target.scheme == "http":
        raise ForbiddenAddressError(target.host, "la redirección quita el cifrado")
    return target


def _as_utf8(header: str) -> str:
    # Hay servidores que mandan las tildes tal cual, casi siempre en utf-8.
    try:
        return header.encode("latin-1").decode("utf-8")
    except UnicodeError:
        return header


def _origin(url: httpx2.URL) -> Origin:
    return url.scheme, url.host.lower(), _port(url)


def _port(url: httpx2.URL) -> int:
    return _PORTS[url.scheme] if url.port is None else url.port


def _check_headers(headers: Mapping[str, str], host: str) -> None:
    """WebError si alguna no se puede mandar tal cual. No la cita: podría ser una clave."""
    for name, value in headers.items():
        if not (_TOKEN.fullmatch(name) and value.isascii() and value.isprintable() and value == value.strip()):
            fix = "si es una clave, cópiala otra vez: solo letras, cifras y signos, sin espacios alrededor"
            raise WebError(f"una cabecera para {host} lleva algo que no se puede mandar", where=host, fix=fix)


def _in_time(resolve: Callable[[], Sequence[str]], deadline: Deadline) -> Sequence[str]:
    """Lo que dé `resolve` antes del plazo: preguntar al DNS no lo tiene, y puede tardar medio minuto."""
    answers: queue.SimpleQueue[Sequence[str] | Exception] = queue.SimpleQueue()

    def ask() -> None:
        try:
            answers.put(resolve())
        except Exception as error:
            answers.put(error)

    threading.Thread(target=ask, daemon=True).start()
    try:
        answer = answers.get(timeout=deadline.left())
    except queue.Empty as error:
        raise httpcore2.TimeoutException("el DNS no contesta") from error
    if isinstance(answer, Exception):
        raise answer
    return answer


@cache
def _tls_context(ca_file: str | None) -> ssl.SSLContext:
    context = httpx2.create_ssl_context(trust_env=False)
    if ca_file is not None:
        try:
            context.load_verify_locations(cafile=ca_file)
        except (OSError, ssl.SSLError) as error:
            message = "no existe o no tiene certificados en PEM"
            raise ConfigError([Problem(str(Path(ca_file)), "web.ca_file", message)]) from error
    return context


def _explain(url: httpx2.URL, error: Exception) -> WebError:
    host = url.host
    for cause in _causes(error):
        if isinstance(cause, ssl.SSLError):
            return TlsError(host, cause)
        if isinstance(cause, socket.gaierror | UnicodeError):
            return NetworkError(f"no existe {host}, o el DNS no contesta", where=host)
    number = next((each.errno for each in _causes(error) if isinstance(each, OSError)), None)
    why = _CAUSES.get(number or 0, "la conexión ha fallado")
    return NetworkError(f"no se llega a {url.netloc.decode('ascii')}", where=host, why=why)


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    """El error y los que lo causaron; httpcore2 quita la causa y la deja de argumento."""
    while error is not None:
        yield error
        error = error.__cause__ or next((each for each in error.args if isinstance(each, BaseException)), None)
