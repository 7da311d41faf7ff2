"""Atención causal con GQA, RMSNorm por cabeza y RoPE, sobre un núcleo elegido y nunca sustituido.

Formas: B secuencias · T tokens · D ancho del flujo residual · H cabezas de consulta · G cabezas de clave y valor ·
C ancho de cada cabeza.
"""

from collections.abc import Iterator
from contextlib import contextmanager

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.nn.attention import SDPBackend, sdpa_kernel

from enlace.config import schema
from enlace.errors import InstallationError
from enlace.model.layers import Linear, RMSNorm

_KERNELS: dict[schema.Attention, SDPBackend] = {
    "math": SDPBackend.MATH,
    "mem_efficient": SDPBackend.EFFICIENT_ATTENTION,
    "flash": SDPBackend.FLASH_ATTENTION,
}


class Attention(nn.Module):
    """Atención de Qwen3: consultas y claves normalizadas por cabeza antes de girarlas."""

    def __init__(self, config: schema.Model) -> None:
        super().__init__()
        self.head_dim = config.head_dim
        self.queries_per_key = config.n_heads // config.n_kv_heads
        self.q_proj = Linear(config.d_model, config.n_heads * config.head_dim)
        self.k_proj = Linear(config.d_model, config.n_kv_heads * config.head_dim)
        self.v_proj = Linear(config.d_model, config.n_kv_heads * config.head_dim)
        self.o_proj = Linear(config.n_heads * config.head_dim, config.d_model)
        self.q_norm = RMSNorm(config.head_dim, config.norm_eps)
        self.k_norm = RMSNorm(config.head_dim, config.norm_eps)

    def forward(self, x_BTD: Tensor, cos_TC: Tensor, sin_TC: Tensor) -> Tensor:
        """De [B, T, D] a [B, T, D]; cada posición solo ve las anteriores y a sí misma."""
        v_BGTC = self._heads(self.v_proj(x_BTD)).transpose(1, 2)
        q_BHTC = rotate(self.q_norm(self._heads(self.q_proj(x_BTD))).transpose(1, 2), cos_TC, sin_TC).type_as(v_BGTC)
        k_BGTC = rotate(self.k_norm(self._heads(self.k_proj(x_BTD))).transpose(1, 2), cos_TC, sin_TC).type_as(v_BGTC)
        mixed_BHTC = F.scaled_dot_product_attention(q_BHTC, self._expand(k_BGTC), self._expand(v_BGTC), is_causal=True)
        output_BTD: Tensor = self.o_proj(mixed_BHTC.transpose(1, 2).flatten(2))
        return output_BTD

    def _heads(self, x_BTX: Tensor) -> Tensor:
        return x_BTX.view(*x_BTX.shape[:2], -1, self.head_dim)

    def _expand(self, x_BGTC: Tensor) -> Tensor:
        # `enable_gqa` evitaría la copia, pero en Turing deja fuera a todo núcleo que no sea `math`.
        return x_BGTC if self.queries_per_key == 1 else x_BGTC.repeat_interleave(self.queries_per_key, dim=1)


def rope_tables(config: schema.Model) -> tuple[Tensor, Tensor]:
    """Coseno y seno de RoPE (Su et al., 2021) de todas las posiciones, float32 [max_sequence_length, C].

    Las dos mitades de la cabeza forman las parejas (componente i con i + C/2), como en Qwen3 y Llama de HF. El seno
    de la primera mitad ya va negado: ver `rotate`.
    """
    exponents = torch.arange(0, config.head_dim, 2, dtype=torch.float32) / config.head_dim
    frequencies = 1.0 / config.rope_theta**exponents
    angles = torch.outer(torch.arange(config.max_sequence_length, dtype=torch.float32), frequencies)
    cos, sin = angles.cos(), angles.sin()
    return torch.cat((cos, cos), dim=-1), torch.cat((-sin, sin), dim=-1)


def rotate(x: Tensor, cos_TC: Tensor, sin_TC: Tensor) -> Tensor:
    """Gira cada pareja de componentes de x […, T, C]: x·cos + rotate_half(x)·sin.

    Con el signo dentro de la tabla, rotate_half es cambiar las dos mitades de sitio. Se dice con `flip` y no con `roll`
    porque el compilador solo sabe hacer vectorial el primero: el otro lo lee elemento a elemento.
    """
    swapped = x.view(*x.shape[:-1], 2, -1).flip(-2).flatten(-2)
    return x * cos_TC + swapped * sin_TC


@contextmanager
def forced_kernel(attention: schema.Attention) -> Iterator[None]:
    """Dentro, la atención usa ese núcleo y ningún otro; InstallationError si aquí no puede."""
    with sdpa_kernel(_KERNELS[attention]):
        try:
            yield
        except RuntimeError as error:
            if "No available kernel" not in str(error) and "No viable backend" not in str(error):
                raise
            raise InstallationError(
                f"la atención «{attention}» no funciona en este dispositivo con este tipo numérico",
                why=str(error).splitlines()[0],
                fix="elige otra en hardware.attention (math funciona en todos) o un perfil de hardware de esta placa",
            ) from error
