"""Procesos hijos que se pueden matar sin avisar."""

import io
import os
import sys
import traceback
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path

from enlace.errors import guard

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


def exit_as_a_command(action: Callable[[], object], output: Path, before: Callable[[], object] = lambda: None) -> None:
    """En un hijo: tras `before`, hace la acción como una orden, con su código de salida y lo que dice en `output`."""
    descriptor = os.open(output, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    os.dup2(descriptor, 2)
    before()
    # Lo demás, a memoria hasta el final: quien cuente las escrituras solo verá las de la acción.
    with redirect_stdout(io.StringIO()) as said, redirect_stderr(said):
        code = guard(lambda: (action(), None)[1])
    os.pwrite(descriptor, said.getvalue().encode(), 0)
    os._exit(code)
