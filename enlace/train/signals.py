"""SIGTERM, Ctrl-C o la terminal que se cierra: acabar el paso, guardar y decir cómo seguir. A la segunda, parar ya."""

import contextlib
import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
STDERR = 2
NOTICE = "\naviso: se acaba el paso y se guarda; una segunda señal para ya, sin guardar\n".encode()


class StopRequest:
    """Si alguien ha pedido parar, y con qué señal."""

    def __init__(self) -> None:
        self.signal: signal.Signals | None = None
        # Con nohup, SIGHUP llega ya ignorada: quien lo puso quiere que se siga.
        heard = [number for number in SIGNALS if signal.getsignal(number) is not signal.SIG_IGN]
        self._previous = {number: signal.signal(number, self._receive) for number in heard}

    def __bool__(self) -> bool:
        return self.signal is not None

    def forget(self) -> None:
        """Deja los manejadores como estaban."""
        for number, handler in self._previous.items():
            signal.signal(number, handler)

    def _receive(self, number: int, _frame: FrameType | None) -> None:
        if self.signal is not None:
            self.forget()
            signal.raise_signal(number)  # la segunda hace lo que habría hecho sin nosotros
            return
        self.signal = signal.Signals(number)
        # os.write y no print: una señal puede llegar en mitad de otro print.
        with contextlib.suppress(OSError):  # sin terminal, o con su disco lleno, también se para
            os.write(STDERR, NOTICE)


@contextmanager
def stop_request() -> Iterator[StopRequest]:
    """Escucha las señales de parada mientras dura el bloque; después deja los manejadores como estaban."""
    request = StopRequest()
    try:
        yield request
    finally:
        request.forget()
