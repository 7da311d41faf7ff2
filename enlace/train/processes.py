"""Los procesos que entrenan juntos una corrida: quién es cada uno y qué se dicen. Uno solo no habla con nadie.

Los lanza torchrun. El principal (el 0) es el único que toca la carpeta de la corrida: los demás reciben de él lo que
haga falta, así que dos máquinas no necesitan compartir disco.
"""

import json
import os
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, NoReturn

import torch
import torch.distributed as dist
from torch import Tensor

from enlace.config.schema import Run
from enlace.durable import Json, to_json
from enlace.errors import ConfigError, EnlaceError, Problem, UsageError

VARIABLES = ("RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE")
# Lo que dicen gloo y NCCL cuando el otro extremo ya no está o no contesta.
PEER_LOST = (
    "Connection closed by peer",
    "Connection reset",
    "Broken pipe",
    "Timed out",
    "timed out",
    "NCCL",
    "recvFrom",
)


@dataclass(frozen=True)
class Processes:
    """Este proceso entre los de la corrida. rank: el suyo, de 0 a count - 1; local_*: lo mismo en esta máquina."""

    rank: int = 0
    count: int = 1
    local_rank: int = 0
    local_count: int = 1

    @property
    def main(self) -> bool:
        """Si es el que escribe, registra y enseña."""
        return self.rank == 0

    def sum(self, values: Tensor) -> Tensor:
        """La suma de lo que aporta cada proceso, igual en todos. Cambia `values`."""
        if self.count > 1:
            dist.all_reduce(values)
        return values

    def any(self, flag: bool) -> bool:
        """True en todos si lo es en alguno: así todos paran en el mismo paso."""
        return bool(self.sum(torch.tensor(float(flag))))

    def share_json(self, read: Callable[[], Json]) -> Json:
        """Lo que lee el principal, en todos."""
        if self.count == 1:
            return read()
        content = to_json(read()) if self.main else b""
        size = self._from_main(torch.tensor(len(content)))
        buffer = torch.frombuffer(bytearray(content or bytes(int(size))), dtype=torch.uint8)
        value: Json = json.loads(self._from_main(buffer).numpy().tobytes())
        return value

    def share_tensors(self, read: Callable[[], Mapping[str, Tensor]]) -> Mapping[str, Tensor]:
        """Los tensores con nombre que lee el principal, en la CPU de todos."""
        if self.count == 1:
            return read()
        tensors = read() if self.main else {}
        shapes: Any = self.share_json(lambda: {name: [_dtype_name(t), list(t.shape)] for name, t in tensors.items()})
        return {
            name: self._from_main(tensors[name] if self.main else torch.empty(shape, dtype=getattr(torch, dtype)))
            for name, (dtype, shape) in shapes.items()
        }

    def _from_main(self, tensor: Tensor) -> Tensor:
        tensor = tensor.contiguous()
        dist.broadcast(tensor, src=0)
        return tensor


ALONE = Processes()
"""Un solo proceso."""


@contextmanager
def joined(run: Run) -> Iterator[Processes]:
    """Reúne a los procesos que lanzó torchrun; sin torchrun, este es el único.

    ConfigError si el lote no se reparte por igual. Si durante el bloque se pierde otro proceso, EnlaceError.
    """
    processes = launched()
    require_even_split(run, processes)
    if processes.count == 1:
        yield processes
        return
    # La CPU siempre habla por gloo; entre GPU, torch elige su biblioteca.
    timeout = timedelta(seconds=run.hardware.process_timeout)
    with _explained(processes):
        dist.init_process_group("gloo" if run.hardware.device == "cpu" else None, timeout=timeout)
        yield processes
        dist.destroy_process_group()


def launched() -> Processes:
    """Este proceso según las variables que pone torchrun; sin ninguna, el único. UsageError si no tienen sentido."""
    given = {name: os.environ[name] for name in VARIABLES if name in os.environ}
    if not given:
        return ALONE
    try:
        processes = Processes(*(int(given[name]) for name in VARIABLES))
        if not (0 <= processes.rank < processes.count and 0 <= processes.local_rank < processes.local_count):
            raise ValueError
    except (KeyError, ValueError) as error:
        raise UsageError(
            "las variables con que torchrun dice a cada proceso cuál es no tienen sentido",
            where=" ".join(f"{name}={given.get(name, '(falta)')}" for name in VARIABLES),
            fix=f"lanza con torchrun, que las pone todas, o quítalas: unset {' '.join(VARIABLES)}",
        ) from error
    return processes


def require_even_split(run: Run, processes: Processes) -> None:
    """ConfigError si el lote no se reparte por igual."""
    if run.train.batch_size % processes.count == 0:
        return
    message = f"{run.train.batch_size} secuencias no se reparten por igual entre {processes.count} procesos."
    raise ConfigError([Problem("torchrun", "train.batch_size", message, "Usa un número de procesos que lo divida.")])


def leave(code: int) -> NoReturn:
    """Acaba este proceso con ese código; si lo lanzó torchrun, sin desmontar el intérprete.

    Las cachés de FSDP2 retienen el grupo y, con él, los hilos de gloo: si uno suelta su último tensor mientras Python
    se desmonta, torch aborta el proceso y torchrun da por fallida una corrida que terminó bien.
    """
    if not any(name in os.environ for name in VARIABLES):
        sys.exit(code)
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError):  # quien leía se pudo ir ya
            stream.flush()
    os._exit(code)


@contextmanager
def _explained(processes: Processes) -> Iterator[None]:
    try:
        yield
    except RuntimeError as error:
        if not any(sign in str(error) for sign in PEER_LOST):
            raise
        raise EnlaceError(
            "se ha perdido otro proceso de la corrida y sin él no se puede seguir",
            where=f"proceso {processes.rank} de {processes.count}",
            why=str(error).splitlines()[0].split(". This is typically")[0],
            fix="mira más arriba qué le pasó al otro; todos siguen desde el último punto de control con --resume auto",
        ) from error


def _dtype_name(tensor: Tensor) -> str:
    return str(tensor.dtype).removeprefix("torch.")
