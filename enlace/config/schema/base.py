"""Base de todos los modelos de configuración."""

from typing import Annotated

from pydantic import AfterValidator, BaseModel, ConfigDict, Field


def _without_nul(path: str) -> str:
    if "\0" in path:
        raise ValueError("una ruta no puede llevar el carácter U+0000")
    return path


PathText = Annotated[str, Field(min_length=1), AfterValidator(_without_nul)]


class Layer(BaseModel):
    """Un grupo de claves: inmutable, sin claves de más y sin convertir tipos a escondidas."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, allow_inf_nan=False)


class BrokenRule(ValueError):
    """Una regla entre varias claves que no se cumple.

    keys: las claves que entran en la regla, relativas al grupo que la comprueba; el mensaje de error dice de dónde
    sale cada una.
    """

    def __init__(self, message: str, *keys: str) -> None:
        super().__init__(message)
        self.keys = keys
