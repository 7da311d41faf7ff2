"""Fallos metidos por el núcleo en las llamadas al sistema de un proceso de verdad, con strace."""

import os
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from .forks import exit_as_a_command, start_child, wait_for

# Cada verbo de disco, con los nombres que le da el núcleo según la máquina.
CALLS = {
    "openat": "openat",
    "write": "write",
    "fsync": "fsync",
    "ftruncate": "ftruncate",
    "mkdir": "?mkdir,?mkdirat",
    "rename": "?rename,?renameat,?renameat2",
    "unlink": "?unlink,?unlinkat",
    "rmdir": "?rmdir",
}


@dataclass(frozen=True)
class Outcome:
    """Cómo acabó el proceso: su código (o la señal, en negativo), lo que dijo y la llamada que falló, si falló."""

    code: int
    said: str
    hit: str | None


def require_strace() -> None:
    """Se salta la prueba, diciéndolo, donde strace no está o no puede engancharse a otro proceso."""
    if shutil.which("strace") is None:
        pytest.skip("FALLOS DE DISCO SIN INYECTAR: falta strace (apt-get install strace)")
    done = subprocess.run(["strace", "-o", os.devnull, "-e", "inject=fsync:error=EIO", "true"], capture_output=True)
    if done.returncode or os.geteuid() != 0:
        pytest.skip("FALLOS DE DISCO SIN INYECTAR: strace necesita root para engancharse a un proceso")


def inject(action: Callable[[], object], call: str, effect: str, nth: int, folder: Path) -> Outcome:
    """Ejecuta la acción en un hijo cuya llamada `call` número `nth` (de cada hilo) sufre `effect` (error=… o signal=…).

    Bifurcar y engancharse después cuesta 20 ms; arrancar otro Python con torch, 2 s.
    """
    names = CALLS.get(call, call)
    options = ["-e", f"trace={names}", "-e", f"inject={names}:{effect}:when={nth}"]
    with _traced(action, options, folder) as (code, said, trace):
        lines = trace.read_text(errors="replace").splitlines()
    hit = [line for line in lines if "(INJECTED)" in line or "= ?" in line]
    return Outcome(code, said, hit[0] if hit else None)


def record(action: Callable[[], object], folder: Path) -> list[str]:
    """Las llamadas de disco que hace la acción, una por línea, con la ruta de cada descriptor."""
    with _traced(action, ["-e", "trace=" + ",".join(CALLS.values())], folder) as (code, said, trace):
        assert code == 0, said
        return trace.read_text(errors="replace").splitlines()


@contextmanager
def _traced(action: Callable[[], object], options: list[str], folder: Path) -> Iterator[tuple[int, str, Path]]:
    output, trace = folder / "salida", folder / "traza"
    output.unlink(missing_ok=True)
    reader, writer = os.pipe()

    def wait_for_strace() -> None:
        os.close(writer)
        os.read(reader, 1)

    child = start_child(lambda: exit_as_a_command(action, output, wait_for_strace))
    os.close(reader)
    while not output.exists():  # abrirla no es una llamada de la acción: strace no debe verla
        time.sleep(0.001)
    order = ["strace", "-f", "-y", "-p", str(child), "-o", str(trace), *options]
    with subprocess.Popen(order, stderr=subprocess.PIPE, text=True, env=os.environ | {"LC_ALL": "C"}) as strace:
        assert strace.stderr is not None
        attached = strace.stderr.readline()
        assert "attached" in attached, attached
        os.close(writer)
        code = wait_for(child)
    yield code, output.read_text(errors="replace"), trace
