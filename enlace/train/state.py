"""El estado entero de un entrenamiento: lo que hay que guardar para que reanudar sea exacto."""

import hashlib
import random
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import AfterValidator, Field, ValidationError
from torch import Tensor, nn
from torch.amp.grad_scaler import GradScaler

from enlace.config.schema import Run
from enlace.config.schema.base import Layer
from enlace.data import Dataset
from enlace.durable import AppendLog, Content, Json, Position, read_json, to_json
from enlace.errors import CorruptDataError
from enlace.model import Transformer
from enlace.model.weights import load_weights, read_tensors, require_match, tensor_chunks
from enlace.train.backends import Backend
from enlace.train.optim import Optimizers, load_state_tensors, state_tensors
from enlace.train.parallel import part_like, whole
from enlace.train.processes import Processes
from enlace.train.records import Natural, first_problem, read_steps

KIND = "checkpoint"
EMPTY_LOG = Position(bytes=0, sha256=hashlib.sha256().hexdigest())
Word = Annotated[int, Field(ge=0, lt=1 << 32)]
Words = Annotated[list[Word], Field(min_length=624, max_length=625)]
Count = Annotated[int, Field(ge=0, lt=1 << 31)]


class SilentLog:
    """El registro de los procesos que no son el principal: no escribe nada."""

    def append(self, record: Mapping[str, Json]) -> None:
        """No hace nada."""

    def sync(self) -> Position:
        """El principio: aquí no hay líneas."""
        return EMPTY_LOG

    def rewind(self, position: Position) -> None:
        """No hace nada."""


class Best(Layer):
    """La mejor medida de validación hasta ahora."""

    step: Natural
    bits_per_byte: float


@dataclass
class Counters:
    """La parte pequeña del estado, que va en JSON.

    samples: secuencias consumidas (toda la posición del cargador) · anomalies: pasos saltados y por qué ·
    consecutive_anomalies: los últimos seguidos · best: menor bits por byte y su paso · seconds: tiempo entrenado.
    """

    step: Natural = 0
    samples: Natural = 0
    tokens: Natural = 0
    seconds: float = 0.0
    consecutive_anomalies: Natural = 0
    anomalies: list[dict[str, Any]] = field(default_factory=list)
    best: Annotated[dict[str, Any], AfterValidator(Best.model_validate)] | None = None


@dataclass
class TrainingState:
    """Todo lo que interviene mientras se entrena."""

    run: Run
    processes: Processes
    backend: Backend
    data: Dataset
    model: Transformer
    objective: nn.Module
    optimizers: Optimizers
    scaler: GradScaler
    log: AppendLog | SilentLog
    counters: Counters
    run_dir: Path

    def environment(self) -> dict[str, str]:
        """Lo que, si cambia al reanudar, deja de ser exacto bit a bit."""
        return {**self.backend.environment(), "processes": str(self.processes.count)}

    def owns(self, checkpoint: Path) -> bool:
        """Si el punto de control es de esta corrida; si no, se está ramificando desde otra."""
        return checkpoint.parent.parent == self.run_dir

    def identity(self) -> dict[str, Any]:
        """Lo que hace que dos corridas sean la misma: configuración, datos y tokenizer.

        De los datos cuenta la huella del contenido, no la ruta: una carpeta se puede mover.
        """
        return {
            "config": self.run.model_dump(mode="json", exclude={"data": {"sources": {"__all__": {"path"}}}}),
            "data": dict(self.data.fingerprint),
            "tokenizer": self.data.tokenizer_sha256,
        }


def capture(state: TrainingState, validation: float | None) -> dict[str, Content]:
    """Copia el estado a memoria de CPU y devuelve los ficheros del punto de control.

    Los tensores son copias: se puede seguir entrenando mientras otro hilo los escribe. Si el modelo está partido, lo
    reúnen todos los procesos a la vez y solo el principal se queda con la copia. El registro se asegura en
    disco antes, para que un punto de control nunca apunte a líneas que un corte de luz pudo borrar.
    validation: bits por byte de validación medidos en este mismo paso, si los hubo.
    """
    document = {
        "counters": asdict(state.counters),
        "validation": validation,
        "scaler": state.scaler.state_dict(),
        "log": asdict(state.log.sync()),
        "host_rng": _host_rng(),
        "environment": state.environment(),
        "identity": state.identity(),
    }
    names = list(state.model.named_parameters())
    return {
        "model.safetensors": tensor_chunks(copy_whole(state, state.model.state_dict())),
        "optimizer.safetensors": tensor_chunks(copy_whole(state, state_tensors(state.optimizers, names))),
        "rng.safetensors": tensor_chunks(copy_whole(state, state.backend.rng_tensors())),
        "state.json": to_json(document),
    }


def restore(state: TrainingState, checkpoint: Path) -> None:
    """Deja modelo, optimizador, escalador, generadores, contadores y registro como estaban en el punto de control.

    Solo lo lee el proceso principal, que lo reparte. El punto de control ya está verificado byte a byte, pero quien lo
    escribió pudo poner cualquier cosa: CorruptDataError si algo no es lo que debe.
    """
    share = state.processes.share_tensors
    document: Any = state.processes.share_json(lambda: read_state(checkpoint))
    weights, moments, rng = (checkpoint / f"{name}.safetensors" for name in ("model", "optimizer", "rng"))
    own = state.model.state_dict()
    tensors = share(lambda: read_tensors(weights))
    parts = {name: part_like(full, own[name]) if name in own else full for name, full in tensors.items()}
    load_weights(state.model, parts, where=str(weights))
    names = list(state.model.named_parameters())
    tensors = share(lambda: read_tensors(moments))
    require_match(state_tensors(state.optimizers, names), tensors, where=str(moments))
    load_state_tensors(state.optimizers, names, tensors)
    _set_random(state, share(lambda: read_tensors(rng)), document["host_rng"], rng)
    if document["scaler"]:
        state.scaler.load_state_dict(document["scaler"])
    state.counters = Counters(**document["counters"])
    # Una rama empieza su propio registro, sin lo que dejara un intento que murió antes de su primer punto de control.
    state.log.rewind(Position(**document["log"]) if state.owns(checkpoint) else EMPTY_LOG)
    if state.processes.main:
        read_steps(state.run_dir)  # mejor saber ahora que no sirve que después de entrenar


class Scaler(Layer):
    """El escalador de float16, como lo guarda torch."""

    scale: float = Field(gt=0)
    growth_factor: float = Field(gt=0)
    backoff_factor: float = Field(gt=0)
    growth_interval: Count
    tracker: Count = Field(alias="_growth_tracker")


class HostRandom(Layer):
    """Los generadores de Python y NumPy. NumPy no mira la posición que se le da: con otra, lee fuera de su memoria."""

    python: tuple[Literal[3], Words, float | None]
    numpy: tuple[Literal["MT19937"], Words, Annotated[int, Field(ge=0, le=624)], Literal[0, 1], float]


class LogPosition(Layer):
    """El punto del registro que vio el punto de control."""

    bytes: Natural
    sha256: str


class Document(Layer):
    """Lo que lleva state.json: un punto de control que viene de otro puede decir cualquier cosa."""

    counters: Counters
    validation: float | None
    scaler: Scaler | Annotated[dict[str, float], Field(max_length=0)]
    log: LogPosition
    host_rng: HostRandom
    environment: dict[str, str]
    identity: dict[str, Any]


def read_state(checkpoint: Path) -> dict[str, Any]:
    """El state.json de un punto de control. CorruptDataError si no tiene las claves y los tipos que debe."""
    path = checkpoint / "state.json"
    document: Any = read_json(path)
    try:
        Document.model_validate_json(to_json(document))
        if document["counters"].keys() != {item.name for item in fields(Counters)}:
            raise ValueError("en counters falta o sobra algo")
    except ValueError as error:
        raise CorruptDataError(
            "el estado no es el de un punto de control",
            where=str(path),
            why=first_problem(error) if isinstance(error, ValidationError) else str(error),
            fix="reanuda con la versión de ENLACE que lo escribió",
        ) from error
    checked: dict[str, Any] = document
    return checked


def copy_whole(state: TrainingState, tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Copias enteras en la CPU del proceso principal; los demás solo ayudan a reunirlas y se quedan sin nada."""
    copies = {}
    for name, tensor in tensors.items():
        full = whole(tensor.detach())
        if state.processes.main:
            copies[name] = full.to("cpu", copy=True)
    return copies


def _host_rng() -> dict[str, Any]:
    version, words, gauss = random.getstate()
    name, keys, position, has_gauss, cached = np.random.get_state(legacy=True)
    return {
        "python": [version, list(words), gauss],
        "numpy": [name, keys.tolist(), position, has_gauss, cached],  # type: ignore[union-attr]
    }


def _set_random(state: TrainingState, tensors: Mapping[str, Tensor], host: Mapping[str, Any], where: Path) -> None:
    """CorruptDataError si lo guardado no es un estado que los generadores admitan."""
    try:
        state.backend.set_rng_tensors(tensors)
        _set_host_rng(host)
    except (KeyError, TypeError, ValueError, RuntimeError) as error:
        raise CorruptDataError(
            "el estado de los generadores aleatorios no sirve",
            where=str(where),
            why=str(error).splitlines()[0],
            fix="reanuda desde otro punto de control",
        ) from error


def _set_host_rng(state: Mapping[str, Any]) -> None:
    version, words, gauss = state["python"]
    random.setstate((version, tuple(words), gauss))
    name, keys, position, has_gauss, cached = state["numpy"]
    np.random.set_state((name, np.array(keys, dtype=np.uint32), position, has_gauss, cached))
