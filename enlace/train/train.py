"""El bucle: de una corrida válida a un modelo entrenado, reanudable bit a bit.

    python -m enlace.train.train configs/runs/smoke-cpu.yaml [clave=valor…] [--resume auto|RUTA] [--estimate]

El orden: comprobar placa, memoria y disco · abrir datos · reanudar si toca · lote de prueba · pasos · terminar.
"""

import argparse
import shlex
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from datetime import UTC, datetime
from pathlib import Path

import torch

from enlace.config import dump, find_run, load_run
from enlace.config.schema import Run
from enlace.data import open_data
from enlace.durable import AppendLog, lock, require_space, sweep, to_json, write_file
from enlace.durable.disk import DISK, make_folders
from enlace.durable.space import writing
from enlace.errors import EnlaceError, guard, say
from enlace.errors.spanish import speak_spanish
from enlace.model import Transformer
from enlace.train.advance import advance, checkpoint_due, measured_validation, unrecoverable
from enlace.train.backends import Backend, board_named, inspect_device, open_backend
from enlace.train.checkpoint import CheckpointWriter, list_checkpoints, size_of
from enlace.train.compiled import cache_folder, compile_blocks, forget
from enlace.train.estimate import Estimate, estimate_run, render_estimate
from enlace.train.finish import finish
from enlace.train.objective import Objective
from enlace.train.optim import Optimizers, build_optimizers
from enlace.train.parallel import replicate, shard
from enlace.train.preflight import dry_batch, or_out_of_memory, require_memory
from enlace.train.processes import ALONE, Processes, joined, launched, leave, require_even_split
from enlace.train.progress import ProgressDisplay
from enlace.train.resume import check_compatible, find_checkpoint, require_same_run
from enlace.train.signals import StopRequest, stop_request
from enlace.train.state import EMPTY_LOG, Counters, SilentLog, TrainingState, capture, restore
from enlace.train.tensorboard import TensorBoard


def launch(run_path: str, overrides: list[str], *, resume: str | None = None, estimate: bool = False) -> None:
    """Lo que hacen `enlace train` y `python -m enlace.train.train`."""
    run = load_run(find_run(run_path), overrides).run
    if estimate:
        plan = estimate_only(run)
        if launched().main:
            print(render_estimate(run, plan))
        return
    if not train(run, resume=resume) and launched().main:
        again = shlex.join(["enlace", "train", run_path, *overrides, "--resume", "auto"])
        command = again if launched().count == 1 else "la misma orden de torchrun, con --resume auto"
        say(f"parada a petición; el trabajo está guardado. Para seguir: {command}")


def estimate_only(run: Run) -> Estimate:
    """El plan sin entrenar: calibrado con pasadas reales si la placa está; si no, con su pico tabulado."""
    processes = launched()
    require_even_split(run, processes)
    try:
        inspect_device(run.hardware.device, processes.local_rank)
    except EnlaceError:
        board = board_named(run.hardware.board)
        peak = board.peak_flops(run.hardware.dtype) if board else None
        return estimate_run(run, peak_flops=peak, measured_pass=None, processes=processes.count)
    with joined(run) as processes:
        backend = _own_backend(run, processes)
        plan = estimate_run(run, peak_flops=backend.peak_flops, measured_pass=None, processes=processes.count)
        if processes.any(plan.memory.total > backend.available_memory()):
            return plan
        objective, _optimizers = build_objective(run, backend, processes)  # su estado también ocupa mientras se mide
        measured = dry_batch(run, backend, replicate(objective, run.hardware, processes), processes)
        return estimate_run(run, peak_flops=backend.peak_flops, measured_pass=measured, processes=processes.count)


def train(run: Run, *, resume: str | None = None) -> bool:
    """Entrena hasta el final (True) o hasta que se pida parar (False, con todo guardado).

    Deja `runs_dir/name/` con config.yaml, log.jsonl, checkpoints/, model/ e informe. Levanta la EnlaceError que
    toque según lo que falle; el último punto de control bueno queda siempre.
    """
    with joined(run) as processes:
        return _train(run, processes, _own_backend(run, processes), resume)


def _own_backend(run: Run, processes: Processes) -> Backend:
    """La placa y los hilos que le tocan a este proceso."""
    rank, count = processes.local_rank, processes.local_count
    return open_backend(run.hardware, seed=run.train.seed, local_rank=rank, local_count=count)


def _train(run: Run, processes: Processes, backend: Backend, resume: str | None) -> bool:
    peak, count = backend.peak_flops, processes.count
    plan = estimate_run(run, peak_flops=peak, measured_pass=None, processes=count)
    require_memory(run, plan.memory, backend.available_memory())
    run_dir = (Path(run.runs_dir) / run.name).resolve()
    with ExitStack() as stack:
        log: AppendLog | SilentLog = SilentLog()
        checkpoint: Path | None = None
        if processes.main:
            log = stack.enter_context(_own_directory(run_dir))
            checkpoint = find_checkpoint(run_dir / "checkpoints", resume)
            require_space(run_dir, _missing_bytes(plan, run_dir / "checkpoints"))
        state = build_state(run, backend, run_dir, log, processes)
        require_same_run(state)
        _start_from(state, checkpoint)
        if run.hardware.compile and processes.main:
            say("compila los bloques: la primera vez tarda unos segundos")
        measured = dry_batch(run, backend, state.objective, processes)
        plan = estimate_run(run, peak_flops=peak, measured_pass=measured, processes=count)
        if processes.main:
            write_file(run_dir / "config.yaml", dump(run).encode())
            write_file(run_dir / "plan.json", to_json(plan.to_json()))
            say(render_estimate(run, plan))
        with stop_request() as stop:
            finished = or_out_of_memory(run, lambda: _run_steps(state, stop))
            if finished:
                finish(state, plan)
                if run.hardware.compile:
                    forget(cache_folder(run_dir, processes.rank))
    return finished


@contextmanager
def _own_directory(run_dir: Path) -> Iterator[AppendLog]:
    """La carpeta de la corrida, para este proceso y ninguno más, sin restos y con su registro abierto."""
    checkpoints = run_dir / "checkpoints"
    with writing(checkpoints):
        make_folders(checkpoints, DISK)  # con cada nombre a salvo: si no, un corte se llevaría la corrida entera
    with lock(run_dir / ".lock"), closing(AppendLog(run_dir / "log.jsonl")) as log:
        sweep(run_dir)
        sweep(checkpoints)
        yield log


def build_state(
    run: Run, backend: Backend, run_dir: Path, log: AppendLog | SilentLog, processes: Processes = ALONE
) -> TrainingState:
    """Abre los datos y construye modelo y optimizadores recién nacidos."""
    data = open_data(run.data, run.model.vocab_size)
    data.require(run.train.sequence_length)
    objective, optimizers = build_objective(run, backend, processes)
    if run.hardware.compile:
        compile_blocks(objective.model, cache_folder(run_dir, processes.rank))
    return TrainingState(
        run=run,
        processes=processes,
        backend=backend,
        data=data,
        model=objective.model,
        objective=replicate(objective, run.hardware, processes),
        optimizers=optimizers,
        scaler=backend.scaler(),
        log=log,
        counters=Counters(),
        run_dir=run_dir,
    )


def build_objective(run: Run, backend: Backend, processes: Processes = ALONE) -> tuple[Objective, Optimizers]:
    """Modelo inicializado con la semilla de la corrida, en el dispositivo, y sus optimizadores."""

    def build() -> tuple[Objective, Optimizers]:
        model = Transformer(run.model, attention=run.hardware.attention, dropout=run.train.dropout)
        model.init_weights(torch.Generator().manual_seed(run.train.seed))
        objective = Objective(model, run.train)
        shard(objective, run.hardware, processes)
        objective.to(backend.device).train()
        return objective, build_optimizers(model, run.train.optimizer, muon_dtype=backend.orthogonalization_dtype)

    return or_out_of_memory(run, build)


def _start_from(state: TrainingState, checkpoint: Path | None) -> None:
    """Sigue desde el punto de control que eligió el proceso principal, o desde el principio."""
    if state.processes.main and checkpoint is not None:
        check_compatible(state, checkpoint)
    chosen = state.processes.share_json(lambda: str(checkpoint) if checkpoint else None)
    if chosen is None:
        # Las líneas que dejara una corrida muerta antes de su primer punto de control se vuelven a escribir.
        state.log.rewind(EMPTY_LOG)
    else:
        restore(state, Path(str(chosen)))
    _note(state, "empieza" if chosen is None else f"sigue desde {Path(str(chosen)).name}")


def _run_steps(state: TrainingState, stop: StopRequest) -> bool:
    """Los pasos que faltan, cada uno con su registro; guarda cuando toca y al parar."""
    writer = CheckpointWriter(state.run_dir / "checkpoints", state.run.train.checkpoints)
    displays = _open_displays(state) if state.processes.main else []
    try:
        while state.counters.step < state.run.train.steps:
            record = advance(state)
            for display in displays:
                display.show(record)
            writer.raise_failure()
            if state.counters.consecutive_anomalies >= state.run.train.anomalies.max_consecutive:
                writer.wait()  # el que se está escribiendo puede ser el último bueno
                _note(state, f"se para: {state.counters.consecutive_anomalies} pasos saltados seguidos")
                raise unrecoverable(state, record)
            stopping = state.processes.any(bool(stop))
            if stopping or checkpoint_due(state.run, state.counters.step):
                _save(state, writer, measured_validation(record))
            if stopping:
                _note(state, f"parada por {stop.signal.name if stop.signal else 'petición'}")
                return state.counters.step == state.run.train.steps
        return True
    finally:
        for display in displays:
            display.close()
        writer.wait()


def _save(state: TrainingState, writer: CheckpointWriter, validation: float | None) -> None:
    files = capture(state, validation)
    if state.processes.main:
        writer.save(state.counters.step, files, _parents(state))


def _open_displays(state: TrainingState) -> list[ProgressDisplay | TensorBoard]:
    train, step = state.run.train, state.counters.step
    displays: list[ProgressDisplay | TensorBoard] = [ProgressDisplay(train.steps, step)]
    if train.tensorboard:
        displays.append(TensorBoard(state.run_dir / "tensorboard", step + 1))
    return displays


def _parents(state: TrainingState) -> dict[str, str]:
    data = {f"data/{name}": sha256 for name, sha256 in state.data.fingerprint.items()}
    return {**data, "tokenizer": state.data.tokenizer_sha256}


def _missing_bytes(plan: Estimate, checkpoints: Path) -> int:
    """Disco que aún hará falta: lo previsto menos lo que ya ocupan los puntos de control de esta corrida."""
    used = sum(map(size_of, list_checkpoints(checkpoints)))
    return max(plan.checkpoint_bytes, plan.disk_bytes - used)


def _note(state: TrainingState, event: str) -> None:
    """Apunta en events.jsonl un suceso de la corrida (empieza, sigue, para), para el informe."""
    if not state.processes.main:
        return
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
    leave(main())
