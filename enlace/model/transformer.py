"""El Transformer: el grafo denso de Qwen3, con los nombres de pesos de Qwen3ForCausalLM.

Formas: B secuencias · T tokens · D ancho del flujo residual · V vocabulario · C ancho de cada cabeza.
"""

import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from enlace.config import schema
from enlace.errors import UsageError
from enlace.model.attention import Attention, forced_kernel, rope_tables
from enlace.model.layers import Embedding, Linear, RMSNorm, SwiGLU


class Block(nn.Module):
    """x + atención(norma(x)) y después x + SwiGLU(norma(x)); dropout solo en esas dos ramas."""

    def __init__(self, config: schema.Model, dropout: float) -> None:
        super().__init__()
        self.input_layernorm = RMSNorm(config.d_model, config.norm_eps)
        self.self_attn = Attention(config)
        self.post_attention_layernorm = RMSNorm(config.d_model, config.norm_eps)
        self.mlp = SwiGLU(config)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x_BTD: Tensor, cos_TC: Tensor, sin_TC: Tensor) -> Tensor:
        """De [B, T, D] a [B, T, D]."""
        x_BTD = x_BTD + self.dropout(self.self_attn(self.input_layernorm(x_BTD), cos_TC, sin_TC))
        output_BTD: Tensor = x_BTD + self.dropout(self.mlp(self.post_attention_layernorm(x_BTD)))
        return output_BTD


class Decoder(nn.Module):
    """Embedding, bloques y norma final."""

    rope_cos_TC: Tensor
    rope_sin_TC: Tensor

    def __init__(self, config: schema.Model, dropout: float) -> None:
        super().__init__()
        self.embed_tokens = Embedding(config.vocab_size, config.d_model)
        self.layers = nn.ModuleList(Block(config, dropout) for _ in range(config.n_layers))
        self.norm = RMSNorm(config.d_model, config.norm_eps)
        cos_TC, sin_TC = rope_tables(config)
        self.register_buffer("rope_cos_TC", cos_TC, persistent=False)
        self.register_buffer("rope_sin_TC", sin_TC, persistent=False)

    def forward(self, ids_BT: Tensor) -> Tensor:
        """De ids [B, T] al estado final normalizado [B, T, D]."""
        cos_TC, sin_TC = self.rope_cos_TC[: ids_BT.shape[1]], self.rope_sin_TC[: ids_BT.shape[1]]
        x_BTD = self.embed_tokens(ids_BT)
        for block in self.layers:
            x_BTD = block(x_BTD, cos_TC, sin_TC)
        output_BTD: Tensor = self.norm(x_BTD)
        return output_BTD


class Transformer(nn.Module):
    """Modelo de lenguaje. Nace con los pesos sin inicializar: `init_weights` o una carga los pone.

    attention: núcleo de atención, forzado. dropout: probabilidad en las ramas residuales, solo en train().
    """

    def __init__(self, config: schema.Model, *, attention: schema.Attention = "math", dropout: float = 0.0) -> None:
        super().__init__()
        self.config = config
        self.attention: schema.Attention = attention
        self.model = Decoder(config, dropout)
        self.lm_head = None if config.tie_embeddings else Linear(config.d_model, config.vocab_size)

    @torch.no_grad()
    def init_weights(self, generator: torch.Generator) -> None:
        """Normal(0, init_std) en las matrices y 1 en las normas.

        Las proyecciones que escriben en el flujo residual llevan init_std/√(2L), para que la varianza del flujo no
        crezca con los L bloques (Radford et al., 2019).
        """
        residual_std = self.config.init_std / math.sqrt(2 * self.config.n_layers)
        for name, parameter in self.named_parameters():
            if parameter.ndim == 1:
                parameter.fill_(1.0)
            else:
                residual = name.endswith(("o_proj.weight", "down_proj.weight"))
                parameter.normal_(0.0, residual_std if residual else self.config.init_std, generator=generator)

    @property
    def head_weight(self) -> Tensor:
        """Matriz de la cabeza [V, D]: la del embedding si van atados."""
        return self.model.embed_tokens.weight if self.lm_head is None else self.lm_head.weight

    def hidden(self, ids_BT: Tensor) -> Tensor:
        """De ids enteros [B, T] al estado final [B, T, D], listo para la cabeza.

        UsageError si T pasa del contexto; InstallationError si el núcleo de atención no puede aquí.
        """
        if ids_BT.shape[1] > self.config.max_sequence_length:
            raise UsageError(
                f"la secuencia tiene {ids_BT.shape[1]} tokens y el contexto es de {self.config.max_sequence_length}",
                fix="acórtala o entrena con un model.max_sequence_length mayor",
            )
        with forced_kernel(self.attention):
            hidden_BTD: Tensor = self.model(ids_BT)
        return hidden_BTD

    def forward(self, ids_BT: Tensor) -> Tensor:
        """De ids [B, T] a logits [B, T, V]. Al entrenar se usa `hidden` con `loss`, que no los reúne nunca."""
        return F.linear(self.hidden(ids_BT), self.head_weight)
