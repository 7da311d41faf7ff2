"""Lo que dicen log.jsonl y events.jsonl: una corrida que viene de otro puede traer cualquier cosa en ellos."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field, ValidationError

from enlace.config.schema.base import Layer
from enlace.durable import read_log
from enlace.errors import CorruptDataError

Log = Sequence[dict[str, Any]]
Natural = Annotated[int, Field(ge=0, lt=1 << 62)]
# Con márgenes para sumar, elevar y dibujar sin desbordar.
Number = Annotated[float, Field(ge=-1e100, le=1e100)]
Measure = Number | Literal["nan", "inf", "-inf"]


class Timing(Layer, extra="ignore"):
    """De lo que tardó un paso, lo que se usa."""

    tokens_per_second: Number = Field(gt=0)


class Step(Layer, extra="ignore"):
    """De una línea de log.jsonl, lo que el informe usa."""

    step: Natural
    bits_per_byte: Measure
    validation: Measure = "nan"
    learning_rate: Number
    grad_norm: Measure
    skipped: str | None
    timing: Timing


class Event(Layer, extra="ignore"):
    """Una línea de events.jsonl."""

    time: str
    step: Natural
    event: str


def read_steps(run_dir: Path) -> Log:
    """Los pasos de una corrida. CorruptDataError, con fichero:línea, si algo de lo que se usa no es lo que debe."""
    return _read(run_dir / "log.jsonl", Step)


def read_events(run_dir: Path) -> Log:
    """Los sucesos de una corrida. CorruptDataError, como en los pasos."""
    return _read(run_dir / "events.jsonl", Event)


def first_problem(error: ValidationError, *group: str) -> str:
    """La primera clave que no sirve, para un mensaje. group: de dónde cuelga lo que se ha contrastado."""
    wrong = ".".join(map(str, (*group, *error.errors()[0]["loc"])))
    return f"no sirve {wrong}" if wrong else "no es un objeto"


def _read(path: Path, schema: type[Layer]) -> Log:
    records = read_log(path)
    for number, record in enumerate(records, start=1):
        try:
            schema.model_validate(record)
        except ValidationError as error:
            raise CorruptDataError(
                "el registro no es el de una corrida",
                where=f"{path}:{number}",
                why=first_problem(error),
                fix="recupéralo de una copia o empieza una corrida nueva",
            ) from error
    return records
