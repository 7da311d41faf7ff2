"""Una corrida: las cuatro capas juntas y las reglas que las cruzan."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Self

from pydantic import Field, model_validator

from enlace.config.schema.base import BrokenRule, Layer, PathText
from enlace.config.schema.data import BYTE_VOCAB_SIZE, Data
from enlace.config.schema.hardware import Hardware
from enlace.config.schema.model import Model
from enlace.config.schema.train import Train

# Carpeta de configs/ y grupo de la corrida → qué claves lleva, en el orden en que se superponen.
LAYERS: Mapping[str, type[Layer]] = MappingProxyType(
    {"hardware": Hardware, "model": Model, "train": Train, "data": Data}
)


class Sample(Layer):
    """Cómo se genera texto con el modelo terminado (pasa a generation_config.json)."""

    prompt: str
    max_new_tokens: int = Field(gt=0)
    temperature: float = Field(ge=0, description="0 elige siempre lo más probable.")
    top_k: int = Field(ge=0, description="0 no recorta.")
    top_p: float = Field(gt=0, le=1, description="1 no recorta.")
    seed: int = Field(ge=0, lt=2**63)


class Run(Layer):
    """Una configuración completa y válida."""

    name: str = Field(pattern=r"^[a-z0-9][a-z0-9_-]*$", description="Carpeta de la corrida.")
    runs_dir: PathText = Field(description="Carpeta de todas las corridas.")
    hardware: Hardware
    model: Model
    train: Train
    data: Data
    sample: Sample

    def micro_batch_size(self, processes: int = 1) -> int:
        """Secuencias por pasada de cada proceso: el mayor divisor de su parte del lote que cabe en la placa."""
        batch = self.train.batch_size // processes
        fits = self.hardware.micro_batch_tokens // self.train.sequence_length
        return next(size for size in range(min(fits, batch), 0, -1) if batch % size == 0)

    def accumulation(self, processes: int = 1) -> int:
        """Pasadas de cada proceso por paso del optimizador."""
        return self.train.batch_size // processes // self.micro_batch_size(processes)

    @property
    def tokens_per_step(self) -> int:
        """Tokens que entran en cada paso del optimizador."""
        return self.train.batch_size * self.train.sequence_length

    @model_validator(mode="after")
    def _layers_agree(self) -> Self:
        sequence = self.train.sequence_length
        if sequence > self.model.max_sequence_length:
            raise BrokenRule(
                f"train.sequence_length ({sequence}) es mayor que "
                f"model.max_sequence_length ({self.model.max_sequence_length})",
                "train.sequence_length",
                "model.max_sequence_length",
            )
        if sequence > self.hardware.micro_batch_tokens:
            raise BrokenRule(
                f"train.sequence_length ({sequence}) no cabe en "
                f"hardware.micro_batch_tokens ({self.hardware.micro_batch_tokens})",
                "train.sequence_length",
                "hardware.micro_batch_tokens",
            )
        return self

    @model_validator(mode="after")
    def _vocabulary_fits_bytes(self) -> Self:
        if self.data.kind == "bytes" and self.model.vocab_size != BYTE_VOCAB_SIZE:
            raise BrokenRule(
                f"leyendo bytes, model.vocab_size ({self.model.vocab_size}) tiene que ser {BYTE_VOCAB_SIZE}: "
                "los 256 bytes y 32 ids especiales",
                "model.vocab_size",
                "data.kind",
            )
        return self
