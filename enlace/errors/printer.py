"""El único sitio que escribe un error en la pantalla y decide el código de salida."""

import sys
import traceback
from collections.abc import Callable

from enlace.errors.hierarchy import Cancelled, EnlaceError

_CONTINUATION = "\n       "


def render(error: EnlaceError) -> str:
    """Devuelve el error en cuatro líneas llanas: error, dónde, por qué y pista (solo las que tienen algo)."""
    parts = (("error", error.what), ("dónde", error.where), ("por qué", error.why), ("pista", error.fix))
    return "\n".join(f"{label}: {text.replace(chr(10), _CONTINUATION)}" for label, text in parts if text)


def warn(message: str) -> None:
    """Escribe un aviso en stderr: degradarse está bien, degradarse en silencio no."""
    print(f"aviso: {message}", file=sys.stderr, flush=True)


def guard(action: Callable[[], None], *, debug: bool = False) -> int:
    """Ejecuta la acción y devuelve el código de salida; los errores salen por stderr.

    Un fallo inesperado (un defecto de ENLACE) también sale en claro, con código 1; `debug` añade la traza.
    """
    try:
        action()
    except KeyboardInterrupt:
        return _report(Cancelled("cancelado"), debug)
    except EnlaceError as error:
        return _report(error, debug)
    except BrokenPipeError:
        # Quien leía la salida (head, less) ya se fue: no es un error de nadie.
        sys.stderr.close()
        return 0
    except Exception as error:
        return _report(_unexpected(error), debug)
    return 0


def _report(error: EnlaceError, debug: bool) -> int:
    if debug:
        traceback.print_exc()
    print(render(error), file=sys.stderr, flush=True)
    return error.exit_code


def _unexpected(error: Exception) -> EnlaceError:
    frames = traceback.extract_tb(error.__traceback__)
    where = f"{frames[-1].filename}:{frames[-1].lineno}" if frames else ""
    return EnlaceError(
        f"fallo inesperado: {type(error).__name__}: {error}",
        where=where,
        why="es un defecto de ENLACE, no tuyo",
        fix="repite la orden con --debug y abre un aviso con lo que salga",
    )
