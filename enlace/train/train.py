"""El bucle: de una corrida válida a un modelo entrenado, reanudable bit a bit.

    python -m enlace.train.train configs/runs/smoke-cpu.yaml [clave=valor…] [--resume auto|RUTA] [--estimate]

El orden: comprobar placa, memoria y disco · abrir datos · reanudar si toca · lote de prueba · pasos · terminar.
"""

import argparse
import math
import shlex
import sys
import time
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import torch

from enlace.config import dump, find_run, load_run
from enlace.config.schema import Run
from enlace.data import open_data
from enlace.durable import AppendLog, lock, require_space, sweep, to_json, write_file
from enlace.durable.space import writing
from enlace.errors import EnlaceError, guard
from enlace.errors.spanish import speak_spanish
from enlace.model import Transformer
from enlace.model.accounting import flops_per_token
from enlace.train.backends import Backend, board_named, inspect_device, open_backend
from enlace.train.checkpoint import CheckpointWriter, list_checkpoints
from enlace.train.estimate import Estimate, estimate_run, render_estimate
from enlace.train.finish import finish
from enlace.train.optim import Optimizers, build_optimizers
from enlace.train.preflight import dry_batch, or_out_of_memory, require_memory
from enlace.train.progress import ProgressDisplay
from enlace.train.resume import check_compatible, find_checkpoint
from enlace.train.signals import StopRequest, stop_request
from enlace.train.state import EMPTY_LOG, Counters, TrainingState, capture, restore
from enlace.train.step import StepResult, optimizer_step
from enlace.train.tensorboard import TensorBoard
from enlace.train.validate import bits_per_byte, validation_bits_per_byte


def launch(run_path: str, overrides: list[str], *, resume: str | None = None, estimate: bool = False) -> None:
    """Lo que hacen `enlace train` y `python -m enlace.train.train`."""
    run = load_run(find_run(run_path), overrides).run
    if estimate:
        print(render_estimate(run, estimate_only(run)))
        return
    if not train(run, resume=resume):
        command = shlex.join(["enlace", "train", run_path, *overrides, "--resume", "auto"])
        print(f"parada a petición; el trabajo está guardado. Para seguir: {command}", file=sys.stderr)


def estimate_only(run: Run) -> Estimate:
    """El plan sin entrenar: calibrado con pasadas reales si la placa está; si no, con su pico tabulado."""
    try:
        inspect_device(run.hardware.device)
    except EnlaceError:
        board = board_named(run.hardware.board)
        peak = board.peak_flops(run.hardware.dtype) if board else None
        return estimate_run(run, peak_flops=peak, measured_pass=None)
    backend = open_backend(run.hardware, seed=run.train.seed)
    plan = estimate_run(run, peak_flops=backend.peak_flops, measured_pass=None)
    if plan.memory.total > backend.available_memory():
        return plan
    model, _optimizers = build_model(run, backend)  # su estado también ocupa memoria mientras se mide
    return estimate_run(run, peak_flops=backend.peak_flops, measured_pass=dry_batch(run, backend, model))


def train(run: Run, *, resume: str | None = None) -> bool:
    """Entrena hasta el final (True) o hasta que se pida parar (False, con todo guardado).

    Deja `runs_dir/name/` con config.yaml, log.jsonl, checkpoints/, model/ e informe. Levanta la EnlaceError que
    toque según lo que falle; el último punto de control bueno queda siempre.
    """
    backend = open_backend(run.hardware, seed=run.train.seed)
    plan = estimate_run(run, peak_flops=backend.peak_flops, measured_pass=None)
    require_memory(run, plan.memory, backend.available_memory())
    run_dir = (Path(run.runs_dir) / run.name).resolve()
    checkpoints = run_dir / "checkpoints"
    with writing(checkpoints):
        checkpoints.mkdir(parents=True, exist_ok=True)
    with lock(run_dir / ".lock"), closing(AppendLog(run_dir / "log.jsonl")) as log:
        sweep(run_dir)
        sweep(checkpoints)
        checkpoint = find_checkpoint(checkpoints, resume)
        require_space(run_dir, _missing_bytes(plan, checkpoints))
        state = build_state(run, backend, run_dir, log)
        _start_from(state, checkpoint)
        measured = dry_batch(run, backend, state.model)
        plan = estimate_run(run, peak_flops=backend.peak_flops, measured_pass=measured)
        write_file(run_dir / "config.yaml", dump(run).encode())
        write_file(run_dir / "plan.json", to_json(plan.to_json()))
        print(render_estimate(run, plan), file=sys.stderr, flush=True)
        with stop_request() as stop:
            finished = or_out_of_memory(run, lambda: _run_steps(state, stop))
            if finished:
                finish(state, plan)
    return finished


def build_state(run: Run, backend: Backend, run_dir: Path, log: AppendLog) -> TrainingState:
    """Abre los datos y construye modelo y optimizadores recién nacidos."""
    data = open_data(run.data, run.model.vocab_size)
    data.require(run.train.sequence_length)
    model, optimizers = build_model(run, backend)
    return TrainingState(run, backend, data, model, optimizers, backend.scaler(), log, Counters(), run_dir)


def build_model(run: Run, backend: Backend) -> tuple[Transformer, Optimizers]:
    """Modelo inicializado con la semilla de la corrida, en el dispositivo, y sus optimizadores."""

    def build() -> tuple[Transformer, Optimizers]:
        model = Transformer(run.model, attention=run.hardware.attention, dropout=run.train.dropout)
        model.init_weights(torch.Generator().manual_seed(run.train.seed))
        model.to(backend.device).train()
        return model, build_optimizers(model, run.train.optimizer, muon_dtype=backend.orthogonalization_dtype)

    return or_out_of_memory(run, build)


def _start_from(state: TrainingState, checkpoint: Path | None) -> None:
    if checkpoint is None:
        # Las líneas que dejara una corrida muerta antes de su primer punto de control se vuelven a escribir.
        state.log.rewind(EMPTY_LOG)
    else:
        check_compatible(state, checkpoint)
        restore(state, checkpoint)
    _note(state, "empieza" if checkpoint is None else f"sigue desde {checkpoint.name}")


def _run_steps(state: TrainingState, stop: StopRequest) -> bool:
    """Los pasos que faltan, cada uno con su registro; guarda cuando toca y al parar."""
    writer = CheckpointWriter(state.run_dir / "checkpoints", state.run.train.checkpoints)
    displays = _open_displays(state)
    try:
        while state.counters.step < state.run.train.steps:
            record = _advance(state)
            for display in displays:
                display.show(record)
            writer.raise_failure()
            if state.counters.consecutive_anomalies >= state.run.train.anomalies.max_consecutive:
                writer.wait()  # el que se está escribiendo puede ser el último bueno
                raise _unrecoverable(state, record)
            if stop or _checkpoint_due(state.run, state.counters.step):
                writer.save(state.counters.step, capture(state, _finite(record.get("validation"))), _parents(state))
            if stop:
                _note(state, f"parada por {stop.signal.name if stop.signal else 'petición'}")
                return state.counters.step == state.run.train.steps
        return True
    finally:
        for display in displays:
            display.close()
        writer.wait()


def _open_displays(state: TrainingState) -> list[ProgressDisplay | TensorBoard]:
    train, step = state.run.train, state.counters.step
    displays: list[ProgressDisplay | TensorBoard] = [ProgressDisplay(train.steps, step)]
    if train.tensorboard:
        displays.append(TensorBoard(state.run_dir / "tensorboard", step + 1))
    return displays


def _advance(state: TrainingState) -> dict[str, Any]:
    """Un paso, su validación si toca y su línea en log.jsonl."""
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


def _record(state: TrainingState, result: StepResult, seconds: float) -> dict[str, Any]:
    """Una línea de log.jsonl. Todo es determinista menos `timing`."""
    rate = state.run.tokens_per_step / seconds
    peak = state.backend.peak_flops
    per_token = flops_per_token(state.run.model, state.run.train.sequence_length)
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
        "timing": {"seconds": seconds, "tokens_per_second": rate, "mfu": per_token * rate / peak if peak else None},
    }


def _json_number(value: float) -> float | str:
    """JSON no tiene NaN ni infinito: se escriben como texto."""
    return value if math.isfinite(value) else str(value)


def _finite(value: float | str | None) -> float | None:
    """Lo contrario: el número de una línea del registro, o None si no lo hay o no es finito."""
    return value if isinstance(value, float) else None


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


def _unrecoverable(state: TrainingState, record: dict[str, Any]) -> EnlaceError:
    """El error de demasiados pasos saltados seguidos, con el último punto de control bueno."""
    counters = state.counters
    _note(state, f"se para: {counters.consecutive_anomalies} pasos saltados seguidos")
    good = list_checkpoints(state.run_dir / "checkpoints")
    return EnlaceError(
        f"{counters.consecutive_anomalies} pasos seguidos sin pérdida o gradiente finitos: "
        "la corrida no se recupera sola",
        where=f"paso {counters.step} ({record['skipped']})",
        why="lo habitual es una tasa de aprendizaje demasiado alta o datos dañados",
        fix=f"último punto de control: {good[-1] if good else 'ninguno'}; "
        f"ramifica desde él con name=otro-nombre, o empieza con una train.optimizer.learning_rate menor",
    )


def _checkpoint_due(run: Run, step: int) -> bool:
    policy = run.train.checkpoints
    return step % policy.every == 0 or step in policy.keep_steps or step == run.train.steps


def _validation_due(run: Run, step: int) -> bool:
    """También en cada punto de control: así se sabe cuál es el mejor."""
    return step % run.train.evaluation.every == 0 or _checkpoint_due(run, step)


def _parents(state: TrainingState) -> dict[str, str]:
    data = {f"data/{name}": sha256 for name, sha256 in state.data.fingerprint.items()}
    return {**data, "tokenizer": state.data.tokenizer_sha256}


def _missing_bytes(plan: Estimate, checkpoints: Path) -> int:
    """Disco que aún hará falta: lo previsto menos lo que ya ocupan los puntos de control de esta corrida."""
    used = sum(file.stat().st_size for path in list_checkpoints(checkpoints) for file in path.iterdir())
    return max(plan.checkpoint_bytes, plan.disk_bytes - used)


def _note(state: TrainingState, event: str) -> None:
    """Apunta en events.jsonl un suceso de la corrida (empieza, sigue, para), para el informe."""
    now = datetime.now(UTC).isoformat(timespec="seconds")
    with closing(AppendLog(state.run_dir / "events.jsonl")) as events:
        events.append({"time": now, "step": state.counters.step, "event": event})


def main(arguments: list[str] | None = None) -> int:
    """La forma de módulo; `enlace train` hace lo mismo."""
    speak_spanish()
    parser = argparse.ArgumentParser(prog="python -m enlace.train.train", description="Entrena una corrida.")
    parser.add_argument("run", metavar="CORRIDA", help="nombre o ruta de un fichero de configs/runs/")
    parser.add_argument(
        "overrides", nargs="*", metavar="clave=valor", help="cambios de última hora, por ejemplo train.seed=7"
    )
    parser.add_argument(
        "--resume", metavar="auto|RUTA", help="sigue desde el último punto de control, o desde uno concreto"
    )
    parser.add_argument("--estimate", action="store_true", help="dice lo que costará, sin entrenar")
    parser.add_argument("--debug", action="store_true", help="enseña la traza de los errores")
    options = parser.parse_intermixed_args(arguments)
    return guard(
        lambda: launch(options.run, options.overrides, resume=options.resume, estimate=options.estimate),
        debug=options.debug,
    )


if __name__ == "__main__":
    sys.exit(main())
