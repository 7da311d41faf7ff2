"""SIGTERM y Ctrl-C: terminar el paso, guardar y decir cómo seguir. La segunda vez, parar ya."""

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

SIGNALS = (signal.SIGINT, signal.SIGTERM)
STDERR = 2
NOTICE = "\naviso: se acaba el paso y se guarda; una segunda señal para ya, sin guardar\n".encode()


class StopRequest:
    """Si alguien ha pedido parar, y con qué señal."""

    def __init__(self) -> None:
        self.signal: signal.Signals | None = None

    def __bool__(self) -> bool:
        return self.signal is not None

    def _receive(self, number: int, _frame: FrameType | None) -> None:
        if self.signal is not None:
            raise KeyboardInterrupt
        self.signal = signal.Signals(number)
        # os.write y no print: una señal puede llegar en mitad de otro print.
        os.write(STDERR, NOTICE)


@contextmanager
def stop_request() -> Iterator[StopRequest]:
    """Escucha las señales de parada mientras dura el bloque; después deja los manejadores como estaban."""
    request = StopRequest()
    previous = {number: signal.signal(number, request._receive) for number in SIGNALS}
    try:
        yield request
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)
