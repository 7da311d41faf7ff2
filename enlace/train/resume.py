"""De qué punto de control se sigue, y qué puede haber cambiado desde entonces."""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from enlace.config.schema import Train
from enlace.durable import DISK, latest, verify
from enlace.durable.space import writing
from enlace.errors import ConfigError, CorruptDataError, EnlaceError, NotFoundError, Problem, UsageError, warn
from enlace.errors.numerals import percent
from enlace.train.checkpoint import PREFIX, checkpoint_step, list_checkpoints
from enlace.train.records import first_problem
from enlace.train.schedule import learning_rate_factor
from enlace.train.state import KIND, TrainingState, read_state

# Lo único que puede cambiar al reanudar: no toca ni un número de los pasos ya dados.
MAY_CHANGE = (
    "config.hardware.process_timeout",
    "config.name",
    "config.runs_dir",
    "config.sample",
    "config.train.steps",
    "config.train.schedule.decay_steps",
    "config.train.checkpoints",
    "config.train.evaluation",
    "config.train.anomalies",
    "config.train.tensorboard",
)
# Cambiar de placa se permite, porque mudarse es legítimo, pero se dice que ya no será exacto bit a bit.
CHANGES_NUMBERS = ("config.hardware", "environment")


def find_checkpoint(folder: Path, resume: str | None) -> Path | None:
    """El punto de control del que seguir, verificado; None para empezar de cero.

    resume: None (empezar; UsageError si ya hay algo), "auto" (el más nuevo que verifica; los dañados se apartan
    y se dice) o la ruta de uno concreto.
    """
    existing = list_checkpoints(folder)
    if resume is None:
        _require_none(existing, folder)
        return None
    if resume != "auto":
        return _explicit(Path(resume), folder)
    chosen, rejected = latest(folder, PREFIX, KIND)
    for path, error in rejected:
        set_aside(path, error)
    if rejected and chosen is None:
        warn("no queda ningún punto de control válido: se empieza desde el principio")
    return chosen


def _explicit(path: Path, folder: Path) -> Path:
    if not path.is_dir():
        raise NotFoundError(
            "no existe ese punto de control",
            where=str(path),
            why="--resume espera auto o la carpeta de un punto de control",
            fix=f"usa --resume auto, o mira cuáles hay en {folder}",
        )
    verify(path, KIND)
    step = read_state(path)["counters"]["step"]
    path = path.resolve()
    existing = list_checkpoints(folder)
    if path.parent != folder:
        _require_none(existing, folder)
    later = [other for other in existing if checkpoint_step(other) > step]
    if later:
        raise UsageError(
            f"hay puntos de control posteriores a {path.name}: {later[-1].name}",
            where=str(folder),
            why="volver atrás en la misma corrida los pisaría",
            fix="ramifica con name=otro-nombre, o sigue con --resume auto",
        )
    return path


def _require_none(existing: list[Path], folder: Path) -> None:
    if existing:
        raise UsageError(
            f"la corrida ya tiene {len(existing)} puntos de control",
            where=str(folder),
            why="empezar de nuevo los pisaría",
            fix="sigue con --resume auto, o empieza otra con name=otro-nombre",
        )


def set_aside(path: Path, error: EnlaceError) -> None:
    """Aparta un punto de control dañado, sin borrarlo, y lo dice."""
    target = path.with_name(f"corrupto-{path.name}")
    number = 2
    while target.exists():
        target, number = path.with_name(f"corrupto-{path.name}-{number}"), number + 1
    with writing(target):
        DISK.rename(path, target)
        DISK.fsync_dir(path.parent)
    warn(f"{path.name} está dañado y se aparta como {target.name}: {error.what} ({error.where})")


def check_compatible(state: TrainingState, checkpoint: Path) -> None:
    """ConfigError, con cada diferencia, si no es la misma corrida; UsageError si a una rama no le quedan pasos."""
    saved = read_state(checkpoint)
    done, steps = saved["counters"]["step"], state.run.train.steps
    if done >= steps and not state.owns(checkpoint):
        raise UsageError(
            f"no queda nada que entrenar: {checkpoint.name} ya tiene {done} pasos y train.steps es {steps}",
            where=str(checkpoint),
            fix=f"pon train.steps a más de {done}",
        )
    before = {**saved["identity"], "environment": saved["environment"]}
    now = {**state.identity(), "environment": state.environment()}
    refused, inexact = [], []
    for key, old, new in differences(before, now):
        if _within(key, MAY_CHANGE):
            continue
        if _within(key, CHANGES_NUMBERS):
            inexact.append(f"{key}: {_written(old)} → {_written(new)}")
        else:
            hint = "Los textos ya no son los mismos." if key.startswith("data.") else ""
            refused.append(Problem(checkpoint.name, key, f"antes {_written(old)}, ahora {_written(new)}.", hint))
    if refused:
        raise ConfigError(
            refused,
            what="no se puede reanudar: no es la misma corrida",
            fix="deja esos valores como estaban, o empieza otra corrida con name=otro-nombre",
        )
    if inexact:
        warn("la reanudación no será exacta bit a bit, porque ha cambiado " + "; ".join(inexact))
    _warn_of_a_jump(_saved_recipe(saved, checkpoint), state.run.train, done)


def _saved_recipe(saved: Mapping[str, Any], checkpoint: Path) -> Train:
    """La receta guardada. Casi toda es ya igual a la de ahora; lo que puede cambiar podría ser cualquier cosa."""
    try:
        return Train.model_validate(saved["identity"]["config"]["train"])
    except ValidationError as error:
        raise CorruptDataError(
            "la receta guardada no es válida",
            where=str(checkpoint / "state.json"),
            why=first_problem(error, "train"),
            fix="reanuda desde otro punto de control",
        ) from error


def require_same_run(state: TrainingState) -> None:
    """ConfigError si este proceso no entrena lo mismo que el principal: otra configuración u otros datos."""
    main: Any = state.processes.share_json(state.identity)
    different = [
        Problem(f"proceso {state.processes.rank}", key, f"en el principal {_written(old)}, aquí {_written(new)}.")
        for key, old, new in differences(main, state.identity())
    ]
    if different:
        raise ConfigError(
            different,
            what="los procesos no entrenan la misma corrida",
            fix="lanza todos con la misma orden y copia los mismos datos a cada máquina",
        )


def _warn_of_a_jump(before: Train, now: Train, done: int) -> None:
    """Cambiar los pasos es exacto en la meseta de wsd; en pleno coseno o descenso, la tasa da un salto."""
    step = max(0, done - 1)
    old = learning_rate_factor(before.schedule, step, before.steps)
    new = learning_rate_factor(now.schedule, step, now.steps)
    if old != new:
        warn(f"con los pasos nuevos la tasa salta de {percent(old)} a {percent(new)} de la máxima en el paso {done}")


def differences(before: Mapping[str, Any], now: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any, Any]]:
    """(clave con puntos, antes, ahora) de cada hoja distinta; «ausente» donde una falta."""
    for key in sorted(before.keys() | now.keys()):
        old, new = before.get(key, "ausente"), now.get(key, "ausente")
        if isinstance(old, Mapping) and isinstance(new, Mapping):
            yield from differences(old, new, f"{prefix}{key}.")
        elif old != new:
            yield f"{prefix}{key}", old, new


def _written(value: object) -> str:
    """Un valor como se escribe en la configuración: true y no True."""
    return json.dumps(value, ensure_ascii=False)


def _within(key: str, groups: tuple[str, ...]) -> bool:
    return any(key == group or key.startswith(group + ".") for group in groups)
