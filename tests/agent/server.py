"""Un servidor HTTP de verdad en esta máquina, que hace de cualquier servicio de internet."""

import ssl
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit

from enlace.config.schema import Web


@dataclass(frozen=True)
class Received:
    """Una petición tal como llegó. form: los campos de la dirección o del formulario."""

    method: str
    path: str
    headers: Mapping[str, str]
    form: Mapping[str, str]


@dataclass(frozen=True)
class Sent:
    """Lo que se contesta."""

    body: bytes = b""
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)


Route = Callable[[Received], Sent] | Callable[[Received, BaseHTTPRequestHandler], None] | Sent


@dataclass
class Server:
    """El servidor y lo que ha recibido. origin: «http://127.0.0.1:PUERTO»."""

    origin: str
    routes: dict[str, Route]
    received: list[Received] = field(default_factory=list)


def web_config(**changes: object) -> Web:
    """La capa `web` de las pruebas."""
    settings = {"user_agent": "ENLACE (prueba)", "timeout_seconds": 5.0, "max_bytes": 1_000_000, "max_redirects": 3}
    return Web.model_validate({**settings, "ca_file": None, **changes})


class _Handler(BaseHTTPRequestHandler):
    """Contesta con las rutas del servidor y apunta lo que llega."""

    described: Server

    def do_GET(self) -> None:
        self._answer()

    def do_POST(self) -> None:
        self._answer()

    def _answer(self) -> None:
        parts = urlsplit(self.path)
        length = int(self.headers.get("Content-Length") or 0)
        fields = parse_qs(parts.query or self.rfile.read(length).decode(), keep_blank_values=True)
        names = {name.lower(): value for name, value in self.headers.items()}
        request = Received(self.command, parts.path, names, {name: value[0] for name, value in fields.items()})
        self.described.received.append(request)
        route = self.described.routes.get(parts.path, self.described.routes.get("*", Sent(status=404)))
        if isinstance(route, Sent):
            self._send(route)
        elif route.__code__.co_argcount == 1:
            self._send(route(request))  # type: ignore[call-arg, arg-type]
        else:
            route(request, self)  # type: ignore[call-arg]

    def _send(self, sent: Sent) -> None:
        self.send_response(sent.status)
        for name, value in {"Content-Length": str(len(sent.body)), **sent.headers}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(sent.body)

    def log_message(self, format: str, *args: object) -> None:
        """Callado."""


class _Listener(ThreadingHTTPServer):
    def handle_error(self, request: object, client_address: object) -> None:
        """Quien preguntaba se fue a media respuesta, que es lo que se prueba."""


@contextmanager
def serving(routes: dict[str, Route], tls: ssl.SSLContext | None = None) -> Iterator[Server]:
    """Sirve esas rutas (sin la consulta; «*» es cualquiera) hasta salir del bloque.

    Una ruta es lo que se contesta, o una función de la petición; si toma dos argumentos escribe ella en la conexión.
    """
    handler = type("Handler", (_Handler,), {})
    listener = _Listener(("127.0.0.1", 0), handler)
    if tls is not None:
        listener.socket = tls.wrap_socket(listener.socket, server_side=True, do_handshake_on_connect=False)
    scheme = "http" if tls is None else "https"
    server = Server(f"{scheme}://127.0.0.1:{listener.server_port}", routes)
    handler.described = server
    threading.Thread(target=lambda: listener.serve_forever(poll_interval=0.01), daemon=True).start()
    try:
        yield server
    finally:
        listener.shutdown()
        listener.server_close()
