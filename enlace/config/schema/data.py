"""Capa `data`: de dónde salen los tokens y en qué proporción."""

from typing import Literal, Self

from pydantic import Field, model_validator

from enlace.config.schema.base import BrokenRule, Layer, PathText

# Los 256 bytes y los 32 ids especiales que todo vocabulario reserva al final.
BYTE_VOCAB_SIZE = 288


class Source(Layer):
    """Una fuente de la mezcla."""

    name: str = Field(min_length=1)
    path: PathText = Field(description="Carpeta o fichero; relativo a donde se lanza la orden.")
    weight: float = Field(gt=0, description="Peso en la mezcla; se normalizan.")


class Data(Layer):
    """Texto leído byte a byte (`bytes`) o shards uint16 ya tokenizados (`shards`)."""

    kind: Literal["bytes", "shards"]
    sources: list[Source] = Field(min_length=1)
    validation_fraction: float = Field(
        ge=0,
        lt=1,
        description="Solo `bytes`: parte de los documentos que se aparta, por hash; los shards ya vienen partidos.",
    )

    @model_validator(mode="after")
    def _names_are_unique(self) -> Self:
        names = [source.name for source in self.sources]
        repeated = sorted({name for name in names if names.count(name) > 1})
        if repeated:
            raise BrokenRule(f"hay fuentes con el mismo nombre: {', '.join(repeated)}", "sources")
        return self
