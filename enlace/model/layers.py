"""Las piezas sin atención: proyección lineal, embedding, RMSNorm y SwiGLU.

Formas: B secuencias · T tokens · D ancho del flujo residual · F ancho interior de SwiGLU.
"""

import torch.nn.functional as F
from torch import Tensor, nn, ones

from enlace.config import schema


class Linear(nn.Linear):
    """Proyección sin sesgo. Nace sin inicializar: los pesos los pone `init_weights` o una carga."""

    def __init__(self, in_features: int, out_features: int) -> None:
        super().__init__(in_features, out_features, bias=False)

    def reset_parameters(self) -> None:
        """No hace nada: inicializar dos veces gastaría tiempo y movería el generador global."""


class Embedding(nn.Embedding):
    """Tabla de ids a vectores. Nace sin inicializar, como `Linear`."""

    def reset_parameters(self) -> None:
        """No hace nada."""


class RMSNorm(nn.Module):
    """x / √(media(x²) + ε) · peso (Zhang y Sennrich, 2019), en float32; devuelve el tipo de la entrada."""

    def __init__(self, width: int, eps: float) -> None:
        super().__init__()
        self.weight = nn.Parameter(ones(width))
        self.eps = eps

    def forward(self, x: Tensor) -> Tensor:
        """x de forma […, width]."""
        return F.rms_norm(x.float(), self.weight.shape, self.weight.float(), self.eps).type_as(x)


class SwiGLU(nn.Module):
    """down(silu(gate(x)) · up(x)) (Shazeer, 2020)."""

    def __init__(self, config: schema.Model) -> None:
        super().__init__()
        self.gate_proj = Linear(config.d_model, config.d_ff)
        self.up_proj = Linear(config.d_model, config.d_ff)
        self.down_proj = Linear(config.d_ff, config.d_model)

    def forward(self, x_BTD: Tensor) -> Tensor:
        """De [B, T, D] a [B, T, D]."""
        hidden_BTF = F.silu(self.gate_proj(x_BTD)) * self.up_proj(x_BTD)
        output_BTD: Tensor = self.down_proj(hidden_BTF)
        return output_BTD
