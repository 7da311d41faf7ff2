"""El modelo repartido entre procesos: copiado en cada uno (DDP) o partido entre todos (FSDP2)."""

from collections.abc import Iterator
from contextlib import contextmanager

from torch import Tensor, nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor import DTensor, distribute_tensor
from torch.nn.parallel import DistributedDataParallel

from enlace.config.schema import Hardware
from enlace.train.objective import Objective
from enlace.train.processes import Processes


def shard(objective: Objective, hardware: Hardware, processes: Processes) -> None:
    """Con FSDP2, parte cada bloque y el resto entre los procesos, sin que quepa entero en ninguno."""
    if processes.count == 1 or hardware.parallel != "shard":
        return
    mesh = init_device_mesh(hardware.device, (processes.count,))
    for block in objective.model.model.layers:
        fully_shard(block, mesh=mesh)
    # Sin esto, tras validar quedaría entero lo que no es de ningún bloque, y no es eso lo que se guarda.
    fully_shard(objective, mesh=mesh, reshard_after_forward=True)


def replicate(objective: Objective, hardware: Hardware, processes: Processes) -> nn.Module:
    """Con DDP, la copia de este proceso, que suma sus gradientes con las demás mientras va hacia atrás."""
    if processes.count == 1 or hardware.parallel != "replicate":
        return objective
    return DistributedDataParallel(objective, forward_sync_buffers=False, gradient_as_bucket_view=True)


@contextmanager
def one_pass(objective: nn.Module, *, last: bool) -> Iterator[None]:
    """Una pasada de las de un paso: DDP solo reúne los gradientes en la última; FSDP2, en todas, para no guardarlos."""
    if isinstance(objective, DistributedDataParallel) and not last:
        with objective.no_sync():
            yield
    else:
        yield


def whole(tensor: Tensor) -> Tensor:
    """El tensor entero, aunque esté partido. Si lo está, lo tienen que pedir todos los procesos a la vez."""
    if not isinstance(tensor, DTensor):
        return tensor
    full: Tensor = tensor.full_tensor()
    return full


def part_like(full: Tensor, own: Tensor) -> Tensor:
    """De un tensor entero, lo que le toca a este proceso de uno repartido como `own`."""
    if not isinstance(own, DTensor):
        return full
    return distribute_tensor(full.to(own.device), own.device_mesh, own.placements, src_data_rank=None)
