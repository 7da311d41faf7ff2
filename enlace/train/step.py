"""Un paso del optimizador: acumulación, recorte, escalado y anomalías."""

import math
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from enlace.data.order import derive
from enlace.train.backends import Backend
from enlace.train.optim import scale_learning_rates
from enlace.train.parallel import one_pass, whole
from enlace.train.schedule import learning_rate_factor
from enlace.train.state import TrainingState

# Con float16, desbordar es normal mientras el escalador busca su escala; por debajo de esta ya no lo es.
SMALLEST_HEALTHY_SCALE = 1.0


@dataclass(frozen=True)
class StepResult:
    """Lo que pasó en un paso. loss y z_loss en nats por token; skipped dice por qué se saltó, o None."""

    loss: float
    z_loss: float
    grad_norm: float
    learning_rate: float
    scale: float
    skipped: str | None

    @property
    def anomalous(self) -> bool:
        """Saltado por algo que no es la búsqueda normal de escala de float16."""
        return self.skipped is not None and self.skipped != "escala"


def optimizer_step(state: TrainingState) -> StepResult:
    """Consume el lote siguiente y actualiza los pesos, salvo que la pérdida o el gradiente no sean finitos.

    Entre varios procesos, cada uno lee sus filas seguidas del mismo lote global.
    """
    train, counters = state.run.train, state.counters
    factor = learning_rate_factor(train.schedule, counters.step, train.steps)
    scale_learning_rates(state.optimizers, factor)
    first, rows = _own_rows(state)
    loss, z_loss = accumulate_gradients(state, state.data.train.batch(first, rows, train.sequence_length, train.seed))
    scale = state.scaler.get_scale()
    for optimizer in state.optimizers:
        state.scaler.unscale_(optimizer)
    norm = float(whole(nn.utils.clip_grad_norm_(state.model.parameters(), train.grad_clip)))
    skipped = _reason_to_skip(loss, norm, scale, scaled=state.scaler.is_enabled())
    for optimizer in state.optimizers:
        if skipped is None:
            state.scaler.step(optimizer)
        optimizer.zero_grad(set_to_none=True)
    state.scaler.update()
    return StepResult(loss, z_loss, norm, train.optimizer.learning_rate * factor, scale, skipped)


def accumulate_gradients(state: TrainingState, batch_BT: NDArray[np.uint16]) -> tuple[float, float]:
    """Suma gradientes de estas filas en pasadas pequeñas; devuelve (pérdida, z-loss) de todos, en nats por token.

    Se normaliza por los tokens objetivo del lote entero, no por la media de las medias de cada pasada: cada proceso
    divide por los suyos, que son los mismos para todos, y DDP y FSDP2 promedian.
    """
    tokens_BT = torch.from_numpy(batch_BT.astype(np.int64)).to(state.backend.device, non_blocking=True)
    targets = tokens_BT[:, 1:].numel()  # sin mirar los valores: contar en la GPU obligaría a esperarla
    totals = torch.zeros(2, dtype=torch.float64, device=state.backend.device)
    passes = torch.split(tokens_BT, state.run.micro_batch_size(state.processes.count))
    for number, micro_BT in enumerate(passes):
        _seed_dropout(state, number * len(micro_BT))
        with one_pass(state.objective, last=number == len(passes) - 1):
            nll, z_loss = forward_loss(state.backend, state.objective, micro_BT)
            state.scaler.scale((nll + z_loss) / targets).backward()  # type: ignore[no-untyped-call]
        totals += torch.stack((nll.detach(), z_loss.detach())).double()
    loss, z = (state.processes.sum(totals) / (targets * state.processes.count)).tolist()
    return loss, z


def forward_loss(backend: Backend, objective: nn.Module, tokens_BT: Tensor) -> tuple[Tensor, Tensor]:
    """(suma de la pérdida, suma de la z-loss) de unas secuencias de T+1 tokens, en la precisión de la placa."""
    with backend.autocast():
        nll, z_loss = objective(tokens_BT)
        return nll, z_loss


def _seed_dropout(state: TrainingState, row: int) -> None:
    """La máscara de una pasada depende solo de qué secuencias lee, no del proceso que las lee."""
    train = state.run.train
    if train.dropout:
        first, _ = _own_rows(state)
        torch.manual_seed(derive(train.seed, f"dropout:{first + row}"))


def _own_rows(state: TrainingState) -> tuple[int, int]:
    """(la primera secuencia del orden global que lee este proceso en este paso, cuántas lee)."""
    rows = state.run.train.batch_size // state.processes.count
    return state.counters.samples + state.processes.rank * rows, rows


def _reason_to_skip(loss: float, norm: float, scale: float, *, scaled: bool) -> str | None:
    if not math.isfinite(loss):
        return "pérdida no finita"
    if math.isfinite(norm):
        return None
    return "escala" if scaled and scale > SMALLEST_HEALTHY_SCALE else "gradiente no finito"
