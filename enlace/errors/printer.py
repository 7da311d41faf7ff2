"""El único sitio que escribe un error en la pantalla y decide el código de salida."""

import contextlib
import signal
import sys
import threading
import traceback
from collections.abc import Callable, Iterator
from types import FrameType

from enlace.errors.hierarchy import Cancelled, EnlaceError, InstallationError

_CONTINUATION = "\n       "
_LONGEST_LINE = 1000


def render(error: EnlaceError) -> str:
    """Devuelve el error en cuatro líneas llanas: error, dónde, por qué y pista (solo las que tienen algo).

    Lo que cita puede ser de un desconocido: los caracteres de control, que mandan en una terminal, salen escapados, y
    las líneas interminables, cortadas.
    """
    parts = (("error", error.what), ("dónde", error.where), ("por qué", error.why), ("pista", error.fix))
    return "\n".join(f"{label}: {_plain(text).replace(chr(10), _CONTINUATION)}" for label, text in parts if text)


def warn(message: str) -> None:
    """Escribe un aviso en stderr: degradarse está bien, degradarse en silencio no."""
    say(f"aviso: {_plain(message)}")


def say(text: str) -> None:
    """Cuenta en stderr cómo va un trabajo. Que nadie pueda leerlo (terminal cerrada, disco lleno) no lo para."""
    with contextlib.suppress(OSError):
        print(text, file=sys.stderr, flush=True)


def _plain(text: str) -> str:
    return "\n".join(map(_plain_line, text.split("\n")))


def _plain_line(line: str) -> str:
    short = line if len(line) <= _LONGEST_LINE else f"{line[:_LONGEST_LINE]}…"
    return "".join(char if char.isprintable() else char.encode("unicode_escape").decode() for char in short)


def guard(action: Callable[[], None], *, debug: bool = False) -> int:
    """Ejecuta la acción y devuelve el código de salida; los errores salen por stderr.

    Un fallo inesperado (un defecto de ENLACE) también sale en claro, con código 1; `debug` añade la traza. SIGTERM
    cancela como Ctrl-C mientras la acción no los escuche de otra forma.
    """
    cancellation = _Cancellation()
    try:
        with cancellation.listening():
            action()
    except KeyboardInterrupt:
        return _report(Cancelled("cancelado"), debug)
    except BrokenPipeError:
        # Quien leía la salida (head, less) ya se fue: no es un error de nadie.
        sys.stderr.close()
        return 0
    except Exception as error:
        return _report(cancellation.explain(error), debug)
    return 0


class _Cancellation:
    """Si una señal ha cancelado la acción."""

    def __init__(self) -> None:
        self._asked = False

    @contextlib.contextmanager
    def listening(self) -> Iterator[None]:
        """Atiende las señales de cancelar mientras dure el bloque; después deja los manejadores como estaban."""
        if threading.current_thread() is not threading.main_thread():  # en otro hilo Python no deja escucharlas
            yield
            return
        previous = {number: signal.signal(number, self._receive) for number in (signal.SIGINT, signal.SIGTERM)}
        try:
            yield
        finally:
            for number, handler in previous.items():
                signal.signal(number, handler)

    def explain(self, error: Exception) -> EnlaceError:
        """Lo que falla tras cancelar es por eso: hay código en C que cambia KeyboardInterrupt por otro error."""
        if self._asked:
            return Cancelled("cancelado")
        return error if isinstance(error, EnlaceError) else _unexpected(error)

    def _receive(self, _number: int, _frame: FrameType | None) -> None:
        self._asked = True
        raise KeyboardInterrupt


def _report(error: EnlaceError, debug: bool) -> int:
    # Si stderr va a un fichero del disco que se ha llenado, queda al menos el código de salida.
    with contextlib.suppress(OSError):
        if debug:
            traceback.print_exc()
        print(render(error), file=sys.stderr, flush=True)
    return error.exit_code


def _unexpected(error: Exception) -> EnlaceError:
    if isinstance(error, ModuleNotFoundError) and error.name and not error.name.startswith("enlace"):
        return InstallationError(
            f"falta el paquete {error.name}",
            why="no está instalado en este entorno",
            fix="scripts/setup.sh; si es de un extra, docs/dependencias.md dice de cuál",
        )
    frames = traceback.extract_tb(error.__traceback__)
    where = f"{frames[-1].filename}:{frames[-1].lineno}" if frames else ""
    return EnlaceError(
        f"fallo inesperado: {type(error).__name__}: {error}",
        where=where,
        why="es un defecto de ENLACE, no tuyo",
        fix="repite la orden con --debug y abre un aviso con lo que salga",
    )
