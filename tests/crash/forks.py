"""Procesos hijos que se pueden matar sin avisar."""

import os
import sys
import traceback
from collections.abc import Callable

# Desde Python 3.12 bifurcar con otros hilos vivos avisa; el hijo aquí solo usa el disco y acaba en _exit.
IGNORE_FORK_WARNING = "ignore:.*use of fork.*:DeprecationWarning"


def start_child(action: Callable[[], object]) -> int:
    """Bifurca, ejecuta `action` en el hijo y devuelve su pid; el hijo sale con 0 o, si `action` falla, con 1."""
    pid = os.fork()
    if pid:
        return pid
    code = 1
    try:
        action()
        code = 0
    except BaseException:
        traceback.print_exc()
        sys.stderr.flush()
    finally:
        os._exit(code)


def wait_for(pid: int) -> int:
    """El código de salida del hijo, o el número de la señal que lo mató, en negativo."""
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
