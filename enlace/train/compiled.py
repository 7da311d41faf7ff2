"""Los bloques compilados: las mismas cuentas en menos pasadas por la memoria. Los pesos y sus nombres no cambian."""

import hashlib
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import torch
import torch._functorch.config
from torch import Tensor

from enlace.config.schema import Hardware
from enlace.errors import InstallationError, warn
from enlace.model import Transformer

Forward = Callable[..., Tensor]


def compile_blocks(model: Transformer, cache: Path) -> None:
    """Deja cada bloque listo para compilarse la primera vez que se use, con formas fijas.

    cache: carpeta de lo compilado. Tiene que ser de esta corrida y de este proceso —dos a la vez la estropean— y estar
    fuera de lo que se copia o se comparte, porque contiene código que se ejecuta.
    """
    if " " in torch.__file__:
        _warn(f"torch no sabe hacerlo desde una carpeta con espacios: {Path(torch.__file__).parent}")
        return
    try:
        cache.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        _warn(str(error))
        return
    from torch._inductor import config  # tarda más de un segundo, y solo hace falta aquí

    os.environ["TORCHINDUCTOR_CACHE_DIR"] = str(cache)
    # Por atributos y no por variables de entorno: al pedir determinismo torch ya las ha leído.
    # Las otras cachés de torch son pickle; sin ellas, volver a empezar tarda un poco más.
    config.fx_graph_cache = False
    torch._functorch.config.enable_autograd_cache = False
    # Lo que esta CPU sabe hacer ya lo dice ella: construir un programa para probar cada juego cuesta segundos.
    config.cpp.vec_isa_ok = True
    # Lo de ir hacia atrás, a la vez que lo de ir hacia delante: si no se puede, que se sepa ya.
    torch._functorch.config.force_non_lazy_backward_lowering = True
    for block in model.model.layers:
        # Solo `forward`, para que los ganchos de FSDP2 queden fuera.
        block.forward = _or_uncompiled(torch.compile(block.forward, dynamic=False, fullgraph=True), block.forward)


def cache_folder(run_dir: Path, rank: int) -> Path:
    """La carpeta de lo compilado para ese proceso de esa corrida, en la caché del usuario.

    InstallationError si el usuario no tiene dónde.
    """
    try:
        base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    except RuntimeError as error:
        raise InstallationError(
            "no se sabe dónde dejar lo compilado: este usuario no tiene carpeta",
            where="hardware.compile",
            fix="define HOME o XDG_CACHE_HOME, o usa hardware.compile=false",
        ) from error
    return base / "enlace" / "compile" / hashlib.sha256(f"{run_dir}|{rank}".encode()).hexdigest()[:16]


def forget(cache: Path) -> None:
    """Borra lo compilado de una corrida que ya terminó."""
    shutil.rmtree(cache, ignore_errors=True)


@contextmanager
def uncompiled(hardware: Hardware) -> Iterator[None]:
    """Dentro no se compila nada: validar y generar usan otras formas, y cada una se compilaría a mitad de corrida."""
    if not hardware.compile:
        yield
        return
    with torch.compiler.set_stance("force_eager"):
        yield


def _or_uncompiled(compiled: Forward, plain: Forward) -> Forward:
    """`compiled`, o `plain` con un aviso si la primera vez no se puede compilar; desde entonces, nada se compila.

    Solo se repite el bloque: repetir la pasada descuadraría lo que este proceso se dice con los demás.
    """

    def forward(*arguments: Tensor) -> Tensor:
        try:
            return compiled(*arguments)
        except RuntimeError as error:
            if not _cannot_compile(error):
                raise
            _warn(str(error))
            torch.compiler.set_stance("force_eager")
            return plain(*arguments)

    return forward


def _warn(reason: str) -> None:
    warn(f"no se puede compilar y se entrena sin ello, más despacio ({reason.strip().splitlines()[0]})")


def _cannot_compile(error: RuntimeError) -> bool:
    return any(each.__module__.startswith(("torch._dynamo", "torch._inductor")) for each in type(error).__mro__)
