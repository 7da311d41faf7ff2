"""Cuánto costará una corrida: parámetros, FLOP, memoria, disco y tiempo, antes de gastar nada."""

from dataclasses import asdict, dataclass
from typing import Any

from enlace.config.schema import Run
from enlace.errors.numerals import decimal, duration, gib, percent, power, thousands
from enlace.model import accounting
from enlace.train.backends import DTYPES


@dataclass(frozen=True)
class Memory:
    """Bytes en el dispositivo mientras se entrena."""

    weights: int
    gradients: int
    optimizer: int
    activations: int

    @property
    def total(self) -> int:
        return self.weights + self.gradients + self.optimizer + self.activations


@dataclass(frozen=True)
class Estimate:
    """El plan de una corrida. seconds es None si no se conoce la velocidad; source dice de dónde sale."""

    parameters: int
    matmul_parameters: int
    flops_per_token: int
    tokens: int
    flops: int
    processes: int
    memory: Memory
    checkpoint_bytes: int
    disk_bytes: int
    seconds: float | None
    source: str

    def to_json(self) -> dict[str, Any]:
        """Para guardarlo con la corrida."""
        return asdict(self)


def estimate_run(run: Run, *, peak_flops: float | None, measured_pass: float | None, processes: int = 1) -> Estimate:
    """Estima la corrida entera; la memoria es la de cada proceso.

    measured_pass: segundos de una pasada real (adelante y atrás) en este dispositivo, si se pudo medir.
    peak_flops: FLOP/s del dispositivo, si se conocen; sin medida se supone `hardware.expected_mfu` de ese pico.
    """
    model, train = run.model, run.train
    parameters = accounting.n_parameters(model)
    per_token = accounting.flops_per_token(model, train.sequence_length)
    tokens = run.tokens_per_step * train.steps
    checkpoint = 4 * parameters + _optimizer_bytes(run, parameters)
    seconds, source = _passes_duration(run, per_token * tokens, peak_flops, measured_pass, processes)
    if seconds is not None:
        seconds *= 1 + _muon_share(run, per_token * run.tokens_per_step // processes)
    return Estimate(
        parameters=parameters,
        matmul_parameters=accounting.n_matmul_parameters(model),
        flops_per_token=per_token,
        tokens=tokens,
        flops=per_token * tokens,
        processes=processes,
        memory=_memory(run, parameters, processes),
        checkpoint_bytes=checkpoint,
        disk_bytes=checkpoint * _kept_at_once(run) + 4 * parameters,
        seconds=seconds,
        source=source,
    )


def _optimizer_bytes(run: Run, parameters: int) -> int:
    """AdamW guarda dos números por parámetro; Muon, uno por cada uno de sus matrices."""
    in_muon = accounting.n_block_parameters(run.model) if run.train.optimizer.muon else 0
    return 8 * parameters - 4 * in_muon


def _memory(run: Run, parameters: int, processes: int) -> Memory:
    width = DTYPES[run.hardware.dtype].itemsize
    parts = processes if run.hardware.parallel == "shard" else 1
    return Memory(
        weights=(4 * parameters + (width * parameters if width < 4 else 0)) // parts,
        gradients=4 * parameters // parts,
        optimizer=_optimizer_bytes(run, parameters) // parts,
        activations=accounting.activation_bytes(
            run.model,
            run.micro_batch_size(processes),
            run.train.sequence_length,
            width,
            run.train.loss_chunk_tokens,
            run.hardware.attention,
        ),
    )


def _kept_at_once(run: Run) -> int:
    """Puntos de control que llegan a coexistir: los que se conservan más el que se está escribiendo."""
    policy = run.train.checkpoints
    return policy.keep_last + policy.keep_best + len(policy.keep_steps) + 1


def _muon_share(run: Run, step_flops: int) -> float:
    """Lo que Muon añade a lo que un proceso calcula por paso: con lotes pequeños se nota. AdamW no llega a un 2 %."""
    muon = run.train.optimizer.muon
    return accounting.orthogonalization_flops(run.model, muon.ns_steps) / step_flops if muon else 0.0


def _passes_duration(
    run: Run, flops: int, peak: float | None, measured_pass: float | None, processes: int
) -> tuple[float | None, str]:
    if measured_pass is not None:
        return measured_pass * run.accumulation(processes) * run.train.steps, "pasadas reales en este dispositivo"
    if peak is None:
        return None, "desconocido: placa sin tabular y ausente"
    mfu = run.hardware.expected_mfu
    return flops / (peak * mfu * processes), f"pico de la placa × {percent(mfu)} esperado, sin medir"


def render_estimate(run: Run, estimate: Estimate) -> str:
    """El plan en líneas llanas."""
    micro, length = run.micro_batch_size(estimate.processes), run.train.sequence_length
    steps = f"{thousands(run.train.steps)} pasos de {thousands(run.tokens_per_step)}"
    rows = (
        ("corrida", f"{run.name} · {run.hardware.board} · {run.hardware.dtype}"),
        ("parámetros", f"{thousands(estimate.parameters)} ({thousands(estimate.matmul_parameters)} en matrices)"),
        ("tokens", f"{thousands(estimate.tokens)} en {steps}"),
        ("pasada", f"{micro} secuencias × {length} tokens, {_passes(run, estimate.processes)}"),
        ("cálculo", f"{power(estimate.flops)} FLOP ({decimal(estimate.flops_per_token / 1e6, 1)} MFLOP por token)"),
        ("memoria", _render_memory(estimate.memory)),
        ("disco", f"{gib(estimate.disk_bytes)} ({estimate.checkpoint_bytes / 2**20:.0f} MiB cada punto de control)"),
        ("tiempo", f"{duration(estimate.seconds)} ({estimate.source})"),
    )
    return "\n".join(f"{label:<11} {value}" for label, value in rows)


def _passes(run: Run, processes: int) -> str:
    together = f" en cada uno de los {processes} procesos" if processes > 1 else ""
    return f"{run.accumulation(processes)} por paso{together}"


def _render_memory(memory: Memory) -> str:
    parts = (("pesos", memory.weights), ("gradientes", memory.gradients), ("optimizador", memory.optimizer))
    listed = ", ".join(f"{name} {gib(size)}" for name, size in (*parts, ("activaciones", memory.activations)))
    return f"{gib(memory.total)} ({listed})"
