"""Fallos metidos por el núcleo en las llamadas al sistema de un proceso de verdad, con strace."""

import io
import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path

import pytest

from enlace.errors import guard

from .forks import start_child, wait_for

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


def inject(action: Callable[[], None], call: str, effect: str, nth: int, folder: Path) -> Outcome:
    """Ejecuta la acción en un hijo cuya llamada `call` número `nth` (de cada hilo) sufre `effect` (error=… o signal=…).

    Bifurcar y engancharse después cuesta 20 ms; arrancar otro Python con torch, 2 s.
    """
    expression = f"inject={CALLS[call]}:{effect}:when={nth}"
    with _traced(action, ["-e", f"trace={CALLS[call]}", "-e", expression], folder) as (code, said, trace):
        lines = trace.read_text(errors="replace").splitlines()
    hit = [line for line in lines if "(INJECTED)" in line or "= ?" in line]
    return Outcome(code, said, hit[0] if hit else None)


def record(action: Callable[[], None], folder: Path) -> list[str]:
    """Las llamadas de disco que hace la acción, una por línea, con la ruta de cada descriptor."""
    with _traced(action, ["-e", "trace=" + ",".join(CALLS.values())], folder) as (code, said, trace):
        assert code == 0, said
        return trace.read_text(errors="replace").splitlines()


@contextmanager
def _traced(action: Callable[[], None], options: list[str], folder: Path) -> Iterator[tuple[int, str, Path]]:
    output, trace = folder / "salida", folder / "traza"
    output.write_bytes(b"")
    reader, writer = os.pipe()

    def wait_and_act() -> None:
        os.close(writer)
        descriptor = os.open(output, os.O_WRONLY)
        os.read(reader, 1)
        # A memoria: así las únicas escrituras que strace cuenta son las de la corrida.
        with redirect_stdout(io.StringIO()) as said, redirect_stderr(said):
            code = guard(action)
        os.pwrite(descriptor, said.getvalue().encode(), 0)
        os._exit(code)

    child = start_child(wait_and_act)
    os.close(reader)
    order = ["strace", "-f", "-y", "-p", str(child), "-o", str(trace), *options]
    with subprocess.Popen(order, stderr=subprocess.PIPE, text=True, env=os.environ | {"LC_ALL": "C"}) as strace:
        assert strace.stderr is not None
        attached = strace.stderr.readline()
        assert "attached" in attached, attached
        os.close(writer)
        code = wait_for(child)
    yield code, output.read_text(errors="replace"), trace
