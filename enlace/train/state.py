"""El estado entero de un entrenamiento: lo que hay que guardar para que reanudar sea exacto."""

import hashlib
import random
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from torch import Tensor, nn
from torch.amp.grad_scaler import GradScaler

from enlace.config.schema import Run
from enlace.data import Dataset
from enlace.durable import AppendLog, Content, Json, Position, read_json, to_json
from enlace.errors import CorruptDataError
from enlace.model import Transformer
from enlace.model.weights import load_weights, read_tensors, tensor_chunks
from enlace.train.backends import Backend
from enlace.train.optim import Optimizers, load_state_tensors, state_tensors
from enlace.train.parallel import part_like, whole
from enlace.train.processes import Processes

KIND = "checkpoint"
EMPTY_LOG = Position(bytes=0, sha256=hashlib.sha256().hexdigest())
_DOCUMENT_KEYS = {"counters", "validation", "scaler", "log", "host_rng", "environment", "identity"}


class SilentLog:
    """El registro de los procesos que no son el principal: no escribe nada."""

    def append(self, record: Mapping[str, Json]) -> None:
        """No hace nada."""

    def sync(self) -> Position:
        """El principio: aquí no hay líneas."""
        return EMPTY_LOG

    def rewind(self, position: Position) -> None:
        """No hace nada."""


@dataclass
class Counters:
    """La parte pequeña del estado, que va en JSON.

    samples: secuencias consumidas (toda la posición del cargador) · anomalies: pasos saltados y por qué ·
    consecutive_anomalies: los últimos seguidos · best: menor bits por byte y su paso · seconds: tiempo entrenado.
    """

    step: int = 0
    samples: int = 0
    tokens: int = 0
    seconds: float = 0.0
    consecutive_anomalies: int = 0
    anomalies: list[dict[str, Any]] = field(default_factory=list)
    best: dict[str, Any] | None = None


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
        "model.safetensors": tensor_chunks(_copy(state, state.model.state_dict())),
        "optimizer.safetensors": tensor_chunks(_copy(state, state_tensors(state.optimizers, names))),
        "rng.safetensors": tensor_chunks(_copy(state, state.backend.rng_tensors())),
        "state.json": to_json(document),
    }


def restore(state: TrainingState, checkpoint: Path) -> None:
    """Deja modelo, optimizador, escalador, generadores, contadores y registro como estaban en el punto de control.

    Solo lo lee el proceso principal, que lo reparte. El punto de control ya está verificado byte a byte; si aun así no
    tiene las claves que debe, CorruptDataError.
    """
    share = state.processes.share_tensors
    document: Any = state.processes.share_json(lambda: read_state(checkpoint))
    weights = checkpoint / "model.safetensors"
    own = state.model.state_dict()
    tensors = share(lambda: read_tensors(weights))
    parts = {name: part_like(full, own[name]) if name in own else full for name, full in tensors.items()}
    load_weights(state.model, parts, where=str(weights))
    names = list(state.model.named_parameters())
    load_state_tensors(state.optimizers, names, share(lambda: read_tensors(checkpoint / "optimizer.safetensors")))
    state.backend.set_rng_tensors(share(lambda: read_tensors(checkpoint / "rng.safetensors")))
    _set_host_rng(document["host_rng"])
    if document["scaler"]:
        state.scaler.load_state_dict(document["scaler"])
    state.counters = Counters(**document["counters"])
    # Una rama empieza su propio registro, sin lo que dejara un intento que murió antes de su primer punto de control.
    state.log.rewind(Position(**document["log"]) if state.owns(checkpoint) else EMPTY_LOG)


def read_state(checkpoint: Path) -> dict[str, Any]:
    """El state.json de un punto de control."""
    document = read_json(checkpoint / "state.json")
    if not isinstance(document, dict) or document.keys() != _DOCUMENT_KEYS:
        raise CorruptDataError(
            "el estado no tiene las claves de un punto de control",
            where=str(checkpoint / "state.json"),
            fix="reanuda con la versión de ENLACE que lo escribió",
        )
    return document


def _copy(state: TrainingState, tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
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


def _set_host_rng(state: Mapping[str, Any]) -> None:
    version, words, gauss = state["python"]
    random.setstate((version, tuple(words), gauss))
    name, keys, position, has_gauss, cached = state["numpy"]
    np.random.set_state((name, np.array(keys, dtype=np.uint32), position, has_gauss, cached))
