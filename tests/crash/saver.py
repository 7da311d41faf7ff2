"""Lo que una corrida guarda, sin la corrida: registro, punto de control, modelo e informe, con sus escritores.

Cuesta milisegundos, y así se pueden probar todos los fallos posibles.
"""

from contextlib import closing
from dataclasses import asdict
from pathlib import Path
from typing import Any

from enlace.config.schema import Checkpoints
from enlace.durable import AppendLog, Position, latest, publish, read_json, read_log, sweep, to_json, verify, write_file
from enlace.train.checkpoint import PREFIX, CheckpointWriter, checkpoint_step
from enlace.train.state import EMPTY_LOG, KIND

CHUNK, CHUNKS = 3_000, 3


def save_next(folder: Path, *, asynchronous: bool = False) -> None:
    """Un paso más desde el último guardado: su línea, su punto de control, el modelo y el informe."""
    policy = Checkpoints(every=1, keep_last=1, keep_best=False, keep_steps=[], asynchronous=asynchronous)
    for place in (folder, folder / "checkpoints"):
        sweep(place)
    newest = _newest(folder)
    step = checkpoint_step(newest) + 1 if newest else 1
    with closing(AppendLog(folder / "log.jsonl")) as log:
        log.rewind(_log_position(newest) if newest else EMPTY_LOG)
        log.append({"step": step})
        position = to_json(asdict(log.sync()))
        writer = CheckpointWriter(folder / "checkpoints", policy)
        weights = (bytes([step % 256]) * CHUNK for _ in range(CHUNKS))
        writer.save(step, {"model.safetensors": weights, "state.json": position}, {})
        writer.wait()
    publish(folder / "model", {"config.json": b"{}", "model.safetensors": bytes(CHUNK)}, kind="model", overwrite=True)
    write_file(folder / "informe.html", f"<p>{step}</p>".encode())


def check(folder: Path) -> int:
    """El último paso guardado (0 si ninguno), después de comprobar que lo que se ve está entero y nada sobra."""
    for place in (folder, folder / "checkpoints"):
        sweep(place)
    newest = _newest(folder)
    if (folder / "model").exists():
        verify(folder / "model", "model")
    left = {place.name for place in folder.iterdir()} | {place.name for place in folder.glob("checkpoints/*")}
    litter = [name for name in left if name.startswith(".")]
    assert not litter, f"queda basura: {litter}"
    if newest is None:
        return 0
    step = checkpoint_step(newest)
    with closing(AppendLog(folder / "log.jsonl")) as log:
        log.rewind(_log_position(newest))
    assert read_log(folder / "log.jsonl") == [{"step": number} for number in range(1, step + 1)]
    return step


def _newest(folder: Path) -> Path | None:
    newest, rejected = latest(folder / "checkpoints", PREFIX, KIND)
    if rejected:
        raise rejected[0][1]
    return newest


def _log_position(checkpoint: Path) -> Position:
    position: Any = read_json(checkpoint / "state.json")
    return Position(**position)
