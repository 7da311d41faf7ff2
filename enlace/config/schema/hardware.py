"""Capa `hardware`: la única que cambia al mudarse de placa."""

from typing import Literal, Self

from pydantic import Field, model_validator

from enlace.config.schema.base import BrokenRule, Layer

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
    compile: bool = Field(description="Compila los bloques: tarda en empezar y después va más deprisa.")
    micro_batch_tokens: int = Field(gt=0, description="Tokens que caben en una pasada; fija la acumulación.")
    parallel: Literal["replicate", "shard"] = Field(
        description="Con varios procesos: replicate copia el modelo en cada uno (DDP); shard lo parte (FSDP2)."
    )
    process_timeout: int = Field(gt=0, description="Segundos sin noticias de otro proceso hasta darlo por perdido.")
    # libgomp no avisa si el sistema no le da tantos hilos: mata el proceso.
    threads: int = Field(ge=0, le=1024, description="Hilos de CPU; 0 usa todos los disponibles.")
    expected_mfu: float = Field(gt=0, le=1, description="Fracción del pico que se espera, para estimar sin la placa.")

    @model_validator(mode="after")
    def _scaler_goes_with_float16(self) -> Self:
        if self.grad_scaler != (self.dtype == "float16"):
            raise BrokenRule("grad_scaler es true con float16 y false con los demás", "grad_scaler", "dtype")
        return self

    @model_validator(mode="after")
    def _scaler_sees_the_whole_gradient(self) -> Self:
        # Con el gradiente partido, cada proceso encontraría infinitos distintos y las escalas se separarían.
        if self.parallel == "shard" and self.grad_scaler:
            raise BrokenRule("shard no admite float16: usa replicate", "parallel", "dtype")
        return self

    @model_validator(mode="after")
    def _attention_exists(self) -> Self:
        # Núcleos de scaled_dot_product_attention en torch 2.10–2.15; backends.py lo contrasta con la placa real.
        if self.device == "cpu" and self.attention == "mem_efficient":
            raise BrokenRule("la CPU no tiene atención mem_efficient: usa flash o math", "attention", "device")
        if self.device == "cuda" and self.attention == "flash" and self.dtype == "float32":
            raise BrokenRule("flash no admite float32 en la GPU: usa mem_efficient o math", "attention", "dtype")
        return self
