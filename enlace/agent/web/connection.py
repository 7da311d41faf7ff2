"""La conexión: a las direcciones ya comprobadas y a ninguna otra, y con un plazo para todo."""

import ssl
import time
from collections.abc import Iterable, Sequence
from typing import Any

import httpcore2

# Cada trozo vuelve a mirar el plazo: de una vez, quien lee despacio lo alargaría sin fin.
_PIECE = 16384


class Deadline:
    """El momento en que todo tiene que haber acabado."""

    def __init__(self, seconds: float) -> None:
        self._end = time.monotonic() + seconds

    def left(self) -> float:
        """Segundos que quedan; httpcore2.TimeoutException si ninguno."""
        left = self._end - time.monotonic()
        if left <= 0:
            raise httpcore2.TimeoutException("se ha acabado el plazo")
        return left


class Pinned(httpcore2.NetworkBackend):
    """Se conecta a esas direcciones, se pida el nombre que se pida: entre mirar y conectarse nada puede cambiar."""

    def __init__(self, addresses: Sequence[str], deadline: Deadline) -> None:
        self._addresses = addresses
        self._deadline = deadline
        self._real = httpcore2.SyncBackend()

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[httpcore2.SOCKET_OPTION] | None = None,
    ) -> httpcore2.NetworkStream:
        """La primera que conteste. Cada una deja tiempo a las que quedan."""
        failure: Exception = httpcore2.ConnectError("no hay direcciones")
        for number, address in enumerate(self._addresses):
            share = self._deadline.left() / (len(self._addresses) - number)
            try:
                return _Timed(self._real.connect_tcp(address, port, timeout=share), self._deadline)
            except (httpcore2.ConnectError, httpcore2.ConnectTimeout) as error:
                failure = error
        raise failure


class _Timed(httpcore2.NetworkStream):
    """Una conexión en la que cada espera cabe en el plazo común: un servidor que gotea no lo alarga."""

    def __init__(self, stream: httpcore2.NetworkStream, deadline: Deadline) -> None:
        self._stream = stream
        self._deadline = deadline

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        """Lo que llegue, antes del plazo."""
        return self._stream.read(max_bytes, timeout=self._deadline.left())

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        """Lo manda antes del plazo."""
        for start in range(0, len(buffer), _PIECE):
            self._stream.write(buffer[start : start + _PIECE], timeout=self._deadline.left())

    def close(self) -> None:
        """Cierra."""
        self._stream.close()

    def start_tls(
        self, ssl_context: ssl.SSLContext, server_hostname: str | None = None, timeout: float | None = None
    ) -> httpcore2.NetworkStream:
        """Cifra la conexión, comprobando el certificado contra el nombre, antes del plazo."""
        secured = self._stream.start_tls(ssl_context, server_hostname=server_hostname, timeout=self._deadline.left())
        return _Timed(secured, self._deadline)

    def get_extra_info(self, info: str) -> Any:
        """Lo que sepa la conexión de verdad."""
        return self._stream.get_extra_info(info)
