"""Un paso contado: darlo, apuntar lo que pasó en log.jsonl y llevar la cuenta de las anomalías."""

import math
import time
from typing import Any

from enlace.config.schema import Run
from enlace.errors import EnlaceError
from enlace.model.accounting import flops_per_token
from enlace.train.checkpoint import list_checkpoints
from enlace.train.state import TrainingState
from enlace.train.step import StepResult, optimizer_step
from enlace.train.validate import bits_per_byte, validation_bits_per_byte


def advance(state: TrainingState) -> dict[str, Any]:
    """Un paso, su validación si toca y su línea en log.jsonl, que devuelve."""
    start = time.perf_counter()
    result = optimizer_step(state)
    state.backend.synchronize()
    seconds = time.perf_counter() - start
    counters = state.counters
    counters.step += 1
    counters.samples += state.run.train.batch_size
    counters.tokens += state.run.tokens_per_step
    _count_anomaly(state, result)
    record = _record(state, result, seconds)
    if _validation_due(state.run, counters.step):
        _validate(state, record)
    counters.seconds += time.perf_counter() - start
    state.log.append(record)
    return record


def checkpoint_due(run: Run, step: int) -> bool:
    """Si al terminar ese paso la receta pide un punto de control."""
    policy = run.train.checkpoints
    return step % policy.every == 0 or step in policy.keep_steps or step == run.train.steps


def measured_validation(record: dict[str, Any]) -> float | None:
    """Los bits por byte de validación de una línea del registro, o None si no los hay o no son finitos."""
    value = record.get("validation")
    return value if isinstance(value, float) else None


def unrecoverable(state: TrainingState, record: dict[str, Any]) -> EnlaceError:
    """El error de demasiados pasos saltados seguidos, con el último punto de control bueno."""
    counters = state.counters
    last = state.processes.share_json(lambda: _last_checkpoint(state))
    return EnlaceError(
        f"{counters.consecutive_anomalies} pasos seguidos sin pérdida o gradiente finitos: "
        "la corrida no se recupera sola",
        where=f"paso {counters.step} ({record['skipped']})",
        why="lo habitual es una tasa de aprendizaje demasiado alta o datos dañados",
        fix=f"último punto de control: {last}; "
        f"ramifica desde él con name=otro-nombre, o empieza con una train.optimizer.learning_rate menor",
    )


def _last_checkpoint(state: TrainingState) -> str:
    good = list_checkpoints(state.run_dir / "checkpoints")
    return str(good[-1]) if good else "ninguno"


def _record(state: TrainingState, result: StepResult, seconds: float) -> dict[str, Any]:
    """Una línea de log.jsonl. Todo es determinista menos `timing`."""
    rate = state.run.tokens_per_step / seconds
    peak = state.backend.peak_flops
    mfu = _flops_per_second(state, rate) / peak / state.processes.count if peak else None
    return {
        "step": state.counters.step,
        "tokens": state.counters.tokens,
        "loss": _json_number(result.loss),
        "z_loss": _json_number(result.z_loss),
        "bits_per_byte": _json_number(bits_per_byte(result.loss, state.data.train.bytes_per_token)),
        "learning_rate": result.learning_rate,
        "grad_norm": _json_number(result.grad_norm),
        "scale": result.scale,
        "skipped": result.skipped,
        "timing": {"seconds": seconds, "tokens_per_second": rate, "mfu": mfu},
    }


def _flops_per_second(state: TrainingState, tokens_per_second: float) -> float:
    return flops_per_token(state.run.model, state.run.train.sequence_length) * tokens_per_second


def _json_number(value: float) -> float | str:
    """JSON no tiene NaN ni infinito: se escriben como texto."""
    return value if math.isfinite(value) else str(value)


def _validate(state: TrainingState, record: dict[str, Any]) -> None:
    score = validation_bits_per_byte(state)
    if score is None:
        return
    record["validation"] = _json_number(score)
    best = state.counters.best
    if math.isfinite(score) and (best is None or score < best["bits_per_byte"]):
        state.counters.best = {"step": state.counters.step, "bits_per_byte": score}


def _count_anomaly(state: TrainingState, result: StepResult) -> None:
    """Apunta el paso saltado, y cuántos van seguidos."""
    counters = state.counters
    if not result.anomalous:
        counters.consecutive_anomalies = 0
        return
    counters.consecutive_anomalies += 1
    counters.anomalies.append({"step": counters.step, "reason": result.skipped})


def _validation_due(run: Run, step: int) -> bool:
    """También en cada punto de control: así se sabe cuál es el mejor."""
    return step % run.train.evaluation.every == 0 or checkpoint_due(run, step)
