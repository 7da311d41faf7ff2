"""El estado entero de un entrenamiento: lo que hay que guardar para que reanudar sea exacto."""

import hashlib
import random
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from torch import Tensor
from torch.amp.grad_scaler import GradScaler

from enlace.config.schema import Run
from enlace.data import Dataset
from enlace.durable import AppendLog, Content, Position, read_json, to_json
from enlace.errors import CorruptDataError
from enlace.model import Transformer
from enlace.model.weights import load_weights, read_tensors, tensor_chunks
from enlace.train.backends import Backend
from enlace.train.optim import Optimizers, load_state_tensors, state_tensors

KIND = "checkpoint"
EMPTY_LOG = Position(bytes=0, sha256=hashlib.sha256().hexdigest())
_DOCUMENT_KEYS = {"counters", "validation", "scaler", "log", "host_rng", "environment", "identity"}


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
    backend: Backend
    data: Dataset
    model: Transformer
    optimizers: Optimizers
    scaler: GradScaler
    log: AppendLog
    counters: Counters
    run_dir: Path

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

    Los tensores son copias: se puede seguir entrenando mientras otro hilo los escribe. El registro se asegura en
    disco antes, para que un punto de control nunca apunte a líneas que un corte de luz pudo borrar.
    validation: bits por byte de validación medidos en este mismo paso, si los hubo.
    """
    document = {
        "counters": asdict(state.counters),
        "validation": validation,
        "scaler": state.scaler.state_dict(),
        "log": asdict(state.log.sync()),
        "host_rng": _host_rng(),
        "environment": state.backend.environment(),
        "identity": state.identity(),
    }
    names = list(state.model.named_parameters())
    return {
        "model.safetensors": tensor_chunks(_copy(state.model.state_dict())),
        "optimizer.safetensors": tensor_chunks(_copy(state_tensors(state.optimizers, names))),
        "rng.safetensors": tensor_chunks(_copy(state.backend.rng_tensors())),
        "state.json": to_json(document),
    }


def restore(state: TrainingState, checkpoint: Path) -> None:
    """Deja modelo, optimizador, escalador, generadores, contadores y registro como estaban en el punto de control.

    El punto de control ya está verificado byte a byte; si aun así no tiene las claves que debe, CorruptDataError.
    """
    document = read_state(checkpoint)
    weights = checkpoint / "model.safetensors"
    load_weights(state.model, read_tensors(weights), where=str(weights))
    names = list(state.model.named_parameters())
    load_state_tensors(state.optimizers, names, read_tensors(checkpoint / "optimizer.safetensors"))
    state.backend.set_rng_tensors(read_tensors(checkpoint / "rng.safetensors"))
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


def _copy(tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    return {name: tensor.detach().to("cpu", copy=True) for name, tensor in tensors.items()}


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
