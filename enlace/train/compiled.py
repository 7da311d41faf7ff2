"""Los bloques compilados: las mismas cuentas en menos pasadas por la memoria. Los pesos y sus nombres no cambian."""

import hashlib
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

import torch

from enlace.config.schema import Hardware
from enlace.errors import warn
from enlace.model import Transformer

Result = TypeVar("Result")


def compile_blocks(model: Transformer, cache: Path) -> None:
    """Deja cada bloque listo para compilarse la primera vez que se use, con formas fijas.

    cache: carpeta de lo compilado. Tiene que ser de esta corrida y de este proceso —dos a la vez la estropean— y estar
    fuera de lo que se copia o se comparte, porque contiene código que se ejecuta.
    """
    os.environ["TORCHINDUCTOR_CACHE_DIR"] = str(cache)
    # Las otras cachés de torch son pickle; sin ellas, volver a empezar tarda un poco más.
    os.environ["TORCHINDUCTOR_FX_GRAPH_CACHE"] = "0"
    os.environ["TORCHINDUCTOR_AUTOGRAD_CACHE"] = "0"
    for block in model.model.layers:
        # Solo `forward`, para que los ganchos de FSDP2 queden fuera.
        block.forward = torch.compile(block.forward, dynamic=False, fullgraph=True)


def cache_folder(run_dir: Path, rank: int) -> Path:
    """La carpeta de lo compilado para ese proceso de esa corrida, en la caché del usuario."""
    base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return base / "enlace" / "compile" / hashlib.sha256(f"{run_dir}|{rank}".encode()).hexdigest()[:16]


def forget(cache: Path) -> None:
    """Borra lo compilado de una corrida que ya terminó."""
    shutil.rmtree(cache, ignore_errors=True)


def or_uncompiled(action: Callable[[], Result]) -> Result:
    """La primera pasada. Si aquí no se puede compilar, un aviso y sin compilar desde ahora."""
    try:
        return action()
    except RuntimeError as error:
        if not _cannot_compile(error):
            raise
        reason = str(error).strip().splitlines()[0]
        warn(f"no se puede compilar y se entrena sin ello, más despacio ({reason})")
        torch.compiler.set_stance("force_eager")
        return action()


@contextmanager
def uncompiled(hardware: Hardware) -> Iterator[None]:
    """Dentro no se compila nada: validar y generar usan otras formas, y cada una se compilaría a mitad de corrida."""
    if not hardware.compile:
        yield
        return
    with torch.compiler.set_stance("force_eager"):
        yield


def _cannot_compile(error: RuntimeError) -> bool:
    return any(each.__module__.startswith(("torch._dynamo", "torch._inductor")) for each in type(error).__mro__)
