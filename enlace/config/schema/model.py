"""Capa `model`: la forma del Transformer (grafo denso de Qwen3)."""

from typing import Self

from pydantic import Field, model_validator

from enlace.config.schema.base import BrokenRule, Layer

UINT16_IDS = 65_536


class Model(Layer):
    """Forma del modelo. Los nombres siguen el uso del campo; la memoria y los FLOP los calcula `enlace.model`."""

    vocab_size: int = Field(gt=0, lt=UINT16_IDS, description="Filas del embedding; los ids caben en uint16.")
    d_model: int = Field(gt=0, description="Ancho del flujo residual.")
    n_layers: int = Field(gt=0, description="Bloques.")
    n_heads: int = Field(gt=0, description="Cabezas de consulta.")
    n_kv_heads: int = Field(gt=0, description="Cabezas de clave y valor (GQA); divide a n_heads.")
    head_dim: int = Field(gt=0, description="Ancho de cada cabeza; par, por RoPE.")
    d_ff: int = Field(gt=0, description="Ancho interior de SwiGLU.")
    max_sequence_length: int = Field(gt=0, description="Contexto máximo, en tokens.")
    rope_theta: float = Field(gt=0, description="Base de RoPE.")
    norm_eps: float = Field(gt=0, description="Épsilon de RMSNorm.")
    init_std: float = Field(gt=0, description="Desviación típica de la inicialización.")
    tie_embeddings: bool = Field(description="La cabeza comparte los pesos del embedding.")

    @model_validator(mode="after")
    def _heads_divide(self) -> Self:
        if self.n_heads % self.n_kv_heads:
            raise BrokenRule(
                f"n_kv_heads ({self.n_kv_heads}) debe dividir a n_heads ({self.n_heads})", "n_kv_heads", "n_heads"
            )
        if self.head_dim % 2:
            raise BrokenRule(f"head_dim ({self.head_dim}) debe ser par: RoPE gira pares de componentes", "head_dim")
        return self
