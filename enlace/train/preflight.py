"""Antes del primer paso: el lote de prueba, para que la falta de memoria se vea en segundos y no a las tres horas."""

import time
from collections.abc import Callable
from typing import TypeVar

import torch
from torch import nn

from enlace.config.schema import Run
from enlace.errors import ResourceError
from enlace.errors.numerals import gib
from enlace.train.backends import Backend, is_out_of_memory
from enlace.train.estimate import Memory
from enlace.train.processes import ALONE, Processes
from enlace.train.step import forward_loss

Result = TypeVar("Result")
MEASURING_SECONDS, MOST_PASSES = 0.5, 5


def dry_batch(run: Run, backend: Backend, objective: nn.Module, processes: Processes = ALONE) -> float:
    """Pasa adelante y atrás, dos veces o más, el mayor lote que se usará; devuelve los segundos de la más rápida.

    Los optimizadores ya tienen su estado en memoria, así que este es el pico de verdad. No cambia pesos, generadores
    ni datos. ResourceError con tres ajustes concretos si no cabe.
    """
    shape = (run.micro_batch_size(processes.count), run.train.sequence_length + 1)
    tokens_BT = torch.zeros(shape, dtype=torch.int64, device=backend.device)
    rng = backend.rng_tensors()

    def once() -> float:
        start = time.perf_counter()
        nll, z_loss = forward_loss(backend, objective, tokens_BT)
        (nll + z_loss).backward()  # type: ignore[no-untyped-call]
        backend.synchronize()
        return time.perf_counter() - start

    def fastest() -> float:
        # La primera calienta; repetir un poco evita que un tropiezo de la máquina estropee la estimación.
        seconds = [once(), once()]
        # Las mismas en todos, aunque no tarden igual: cada pasada reúne gradientes con los demás.
        while len(seconds) < MOST_PASSES and not processes.any(sum(seconds) >= MEASURING_SECONDS):
            seconds.append(once())
        return min(seconds[1:])

    seconds = or_out_of_memory(run, fastest)
    objective.zero_grad(set_to_none=True)
    backend.set_rng_tensors(rng)
    return seconds


def or_out_of_memory(run: Run, action: Callable[[], Result]) -> Result:
    """Ejecuta la acción; si se agota la memoria, ResourceError con qué bajar."""
    try:
        return action()
    except (RuntimeError, MemoryError) as error:
        if not is_out_of_memory(error):
            raise
        raise out_of_memory(run, str(error).splitlines()[0]) from error


def require_memory(run: Run, needed: Memory, available: int) -> None:
    """ResourceError si la estimación no cabe: en CPU, Linux promete memoria que luego mata al proceso."""
    if needed.total > available:
        raise out_of_memory(run, f"hacen falta unos {gib(needed.total)} y hay libres {gib(available)}")


def out_of_memory(run: Run, why: str) -> ResourceError:
    """El error de memoria, con tres ajustes concretos de esta corrida."""
    halved_micro = max(run.train.sequence_length, run.hardware.micro_batch_tokens // 2)
    halved_length = max(1, run.train.sequence_length // 2)
    settings = (
        f"hardware.micro_batch_tokens={halved_micro} (menos secuencias por pasada; el resultado es el mismo)",
        f"train.sequence_length={halved_length} (contexto más corto)",
        f"train.loss_chunk_tokens={max(1, run.train.loss_chunk_tokens // 2)} o un modelo menor "
        f"(include.model; este tiene d_model={run.model.d_model} y {run.model.n_layers} bloques)",
    )
    return ResourceError("no cabe en memoria", where=run.hardware.board, why=why, fix="\n".join(settings))
