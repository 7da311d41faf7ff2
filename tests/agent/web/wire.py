"""Conversaciones escritas a mano, byte a byte, para lo que un servidor educado no hace."""

import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field

from enlace.agent.web import WebClient
from tests.agent.server import Server, web_config

Talk = Callable[[socket.socket], None]


@dataclass
class Internet:
    """served: (dirección, puerto) → el servidor que hace de ella. tried: a dónde se ha querido conectar el cliente."""

    served: dict[tuple[str, int], Server] = field(default_factory=dict)
    tried: list[tuple[str, int]] = field(default_factory=list)


def client(origin: Server | str, **changes: object) -> WebClient:
    """Un cliente al que se le permite ese origen."""
    allowed = origin if isinstance(origin, str) else origin.origin
    return WebClient(web_config(**changes), allowed_origins=[allowed])


@contextmanager
def talking(*talks: Talk, scheme: str = "http") -> Iterator[str]:
    """Un origen que atiende una conexión tras otra, cada una con su guion; que el cliente se vaya no es un fallo."""
    listener = socket.create_server(("127.0.0.1", 0))
    listener.settimeout(10)

    def attend() -> None:
        for talk in talks:
            with suppress(OSError):
                connection = listener.accept()[0]
                with connection:
                    connection.settimeout(10)
                    talk(connection)

    thread = threading.Thread(target=attend, daemon=True)
    thread.start()
    try:
        yield f"{scheme}://127.0.0.1:{listener.getsockname()[1]}"
    finally:
        # `close` a secas no despierta a quien espera una conexión.
        with suppress(OSError):
            listener.shutdown(socket.SHUT_RDWR)
        listener.close()
        thread.join(10)


def answer(reply: bytes) -> Talk:
    """Lee la petición y contesta."""

    def talk(connection: socket.socket) -> None:
        connection.recv(65536)
        connection.sendall(reply)

    return talk


def silent(connection: socket.socket) -> None:
    """Escucha y no contesta, hasta que el cliente se va."""
    while connection.recv(65536):
        pass


def drip(reply: bytes, gap: float) -> Talk:
    """Contesta un byte cada tanto, hasta que el cliente se va."""

    def talk(connection: socket.socket) -> None:
        for byte in reply:
            connection.sendall(bytes([byte]))
            time.sleep(gap)

    return talk
