"""Capa `train`: la receta (pasos, lote, optimizador, horario, puntos de control)."""

from typing import Literal, Self

from pydantic import Field, PositiveInt, model_validator

from enlace.config.schema.base import BrokenRule, Layer


class Muon(Layer):
    """Muon (Jordan y otros, 2024) en las matrices de los bloques."""

    momentum: float = Field(ge=0, lt=1)
    ns_steps: int = Field(gt=0, description="Pasos de Newton–Schulz.")


class Optimizer(Layer):
    """AdamW (Loshchilov y Hutter, 2019) con una tasa por grupo; las matrices, con Muon si se pide."""

    learning_rate: float = Field(gt=0, description="Tasa máxima de las matrices de los bloques.")
    embedding_learning_rate: float = Field(gt=0, description="Tasa del embedding, que no decae.")
    head_learning_rate: float = Field(gt=0, description="Tasa de la cabeza cuando no va atada al embedding.")
    norm_learning_rate: float = Field(gt=0, description="Tasa de las normas, que no decaen.")
    weight_decay: float = Field(ge=0, description="Decaimiento de las matrices y de la cabeza suelta.")
    beta1: float = Field(ge=0, lt=1)
    beta2: float = Field(ge=0, lt=1)
    eps: float = Field(gt=0)
    muon: Muon | None = Field(description="Muon para las matrices; null las deja también en AdamW.")


class Schedule(Layer):
    """Factor de la tasa de aprendizaje según el paso: calentamiento, meseta (wsd) y descenso."""

    kind: Literal["wsd", "cosine"]
    warmup_steps: int = Field(ge=0)
    decay_steps: int = Field(ge=0, description="Solo wsd: pasos del descenso lineal final.")
    final_ratio: float = Field(ge=0, le=1, description="Fracción de la tasa al terminar.")


class Anomalies(Layer):
    """Pérdida o gradiente no finitos: el paso se salta y se cuenta; demasiados seguidos paran la corrida."""

    max_consecutive: int = Field(gt=0)


class Checkpoints(Layer):
    """Qué puntos de control se escriben y cuáles se conservan. El último bueno no se borra nunca."""

    every: int = Field(gt=0, description="Pasos entre puntos de control.")
    keep_last: int = Field(ge=1)
    keep_best: bool = Field(description="Conserva el de menor bits por byte de validación.")
    keep_steps: list[PositiveInt] = Field(description="Pasos que se guardan y se conservan siempre.")
    asynchronous: bool = Field(description="Escribe en otro hilo mientras se sigue entrenando.")


class Evaluation(Layer):
    """Validación en bits por byte durante el entrenamiento."""

    every: int = Field(gt=0, description="Pasos entre validaciones.")
    sequences: int = Field(gt=0, description="Secuencias de validación por pasada, siempre las mismas.")


class Train(Layer):
    """La receta de una corrida."""

    seed: int = Field(ge=0, lt=2**63)
    steps: int = Field(gt=0, description="Pasos del optimizador.")
    sequence_length: int = Field(gt=0, description="Tokens por secuencia.")
    batch_size: int = Field(gt=0, description="Secuencias por paso del optimizador.")
    loss_chunk_tokens: int = Field(gt=0, description="Tokens por trozo al calcular cabeza y pérdida.")
    grad_clip: float = Field(gt=0, description="Norma máxima del gradiente.")
    z_loss: float = Field(ge=0, description="Coeficiente de la z-loss; 0 la apaga.")
    dropout: float = Field(ge=0, lt=1)
    optimizer: Optimizer
    schedule: Schedule
    anomalies: Anomalies
    checkpoints: Checkpoints
    evaluation: Evaluation
    tensorboard: bool = Field(description="Copia las curvas a TensorBoard (extra `tensorboard`).")

    @model_validator(mode="after")
    def _schedule_fits(self) -> Self:
        decay = self.schedule.decay_steps if self.schedule.kind == "wsd" else 0
        if self.schedule.warmup_steps + decay > self.steps:
            raise BrokenRule(
                f"schedule.warmup_steps ({self.schedule.warmup_steps}) + schedule.decay_steps ({decay}) "
                f"no caben en steps ({self.steps})",
                "steps",
                "schedule.warmup_steps",
                "schedule.decay_steps",
            )
        return self
