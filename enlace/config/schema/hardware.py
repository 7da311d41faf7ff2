"""Capa `hardware`: la única que cambia al mudarse de placa."""

from typing import Literal, Self

from pydantic import Field, model_validator

from enlace.config.schema.base import Layer

DType = Literal["float32", "float16", "bfloat16"]
Attention = Literal["math", "mem_efficient", "flash"]


class Hardware(Layer):
    """Perfil de una placa. `enlace/train/backends.py` lo contrasta con el dispositivo real."""

    board: str = Field(description="Nombre de la placa, para los informes y los mensajes.")
    device: Literal["cpu", "cuda"] = Field(description="Dispositivo de torch.")
    dtype: DType = Field(description="Tipo numérico de las multiplicaciones; los pesos maestros son siempre float32.")
    attention: Attention = Field(description="Núcleo de atención, forzado: nunca se sustituye en silencio.")
    grad_scaler: bool = Field(description="Escalado de la pérdida, obligatorio con float16.")
    deterministic: bool = Field(description="Solo núcleos deterministas: sin esto reanudar no es exacto.")
    micro_batch_tokens: int = Field(gt=0, description="Tokens que caben en una pasada; fija la acumulación.")
    threads: int = Field(ge=0, description="Hilos de CPU; 0 usa todos los disponibles.")
    expected_mfu: float = Field(gt=0, le=1, description="Fracción del pico que se espera, para estimar sin la placa.")

    @model_validator(mode="after")
    def _scaler_goes_with_float16(self) -> Self:
        if self.grad_scaler != (self.dtype == "float16"):
            raise ValueError("grad_scaler debe ser true con dtype float16 y false con los demás")
        return self
