"""Validación en bits por byte, siempre sobre las mismas secuencias."""

import math

import numpy as np
import torch

from enlace.data import Mixture
from enlace.train.compiled import uncompiled
from enlace.train.state import TrainingState
from enlace.train.step import forward_loss

# La misma en todas las corridas: sus cifras de validación se comparan entre sí.
VALIDATION_SEED = 0


def bits_per_byte(loss: float, bytes_per_token: float) -> float:
    """De nats por token a bits por byte del texto original: comparable entre tokenizers."""
    return loss / math.log(2) / bytes_per_token


def validation_bits_per_byte(state: TrainingState) -> float | None:
    """Bits por byte del modelo en la validación; None si los datos no traen. No toca ningún generador aleatorio.

    Todos los procesos la pasan entera: cuesta lo mismo que con uno y da el mismo número.
    """
    validation: Mixture = state.data.validation
    length = state.run.train.sequence_length
    if not validation.sources:
        return None
    available = sum(source.n_samples(length) for source in validation.sources)
    sequences = min(state.run.train.evaluation.sequences, available)
    state.model.eval()
    total = torch.zeros((), dtype=torch.float64, device=state.backend.device)
    with torch.no_grad(), uncompiled(state.run.hardware):
        size = state.run.micro_batch_size(state.processes.count)
        for start in range(0, sequences, size):
            count = min(size, sequences - start)
            batch = validation.batch(start, count, length, VALIDATION_SEED).astype(np.int64)
            tokens_BT = torch.from_numpy(batch).to(state.backend.device)
            nll, _ = forward_loss(state.backend, state.objective, tokens_BT)
            total += nll.double()
    state.model.train()
    return bits_per_byte(float(total) / (sequences * length), validation.bytes_per_token)
