"""Un servidor en esta máquina, y un internet de mentira al que solo llegan las direcciones que se digan."""

import errno
from collections.abc import Iterator

import httpcore2
import pytest

from tests.agent.server import Sent, Server, serving
from tests.agent.web.wire import Internet


@pytest.fixture
def server() -> Iterator[Server]:
    hello = Sent("hola, señora".encode(), headers={"Content-Type": "text/plain; charset=utf-8"})
    with serving({"/": hello}) as running:
        yield running


@pytest.fixture
def internet(monkeypatch: pytest.MonkeyPatch) -> Internet:
    """Cambia el último paso, el de la biblioteca que abre la conexión: todo lo nuestro es lo de verdad."""
    net, connect = Internet(), httpcore2.SyncBackend.connect_tcp

    def route(self: httpcore2.SyncBackend, host: str, port: int, **options: object) -> httpcore2.NetworkStream:
        net.tried.append((host, port))
        if (host, port) not in net.served:
            raise httpcore2.ConnectError(OSError(errno.ENETUNREACH, "no hay red"))
        real = int(net.served[host, port].origin.rsplit(":", 1)[1])
        return connect(self, "127.0.0.1", real, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(httpcore2.SyncBackend, "connect_tcp", route)
    return net
