"""Base de todos los modelos de configuración."""

from pydantic import BaseModel, ConfigDict


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
