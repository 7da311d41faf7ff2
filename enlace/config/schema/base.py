"""Base de todos los modelos de configuración."""

from pydantic import BaseModel, ConfigDict


class Layer(BaseModel):
    """Un grupo de claves: inmutable, sin claves de más y sin convertir tipos a escondidas."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, allow_inf_nan=False)
