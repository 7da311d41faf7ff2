"""Formas de juguete y pesos que no dejan ninguna pieza sin probar."""

from typing import Any

import torch

from enlace.config.schema import Model
from enlace.model import Transformer


def shape(**changes: Any) -> Model:
    """Una forma diminuta; head_dim no es d_model / n_heads a propósito."""
    values: dict[str, Any] = {
        "vocab_size": 61,
        "d_model": 24,
        "n_layers": 2,
        "n_heads": 4,
        "n_kv_heads": 2,
        "head_dim": 10,
        "d_ff": 40,
        "max_sequence_length": 32,
        "rope_theta": 500.0,
        "norm_eps": 1e-5,
        "init_std": 0.02,
        "tie_embeddings": True,
    }
    return Model(**values | changes)


def random_model(config: Model, seed: int = 0, **options: Any) -> Transformer:
    """Pesos grandes y normas distintas de 1: con los de nacimiento casi cualquier grafo daría lo mismo."""
    generator = torch.Generator().manual_seed(seed)
    model = Transformer(config, **options)
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.ndim == 1:
                parameter.uniform_(0.3, 2.0, generator=generator)
            else:
                parameter.normal_(0.0, 1.5 / parameter.shape[1] ** 0.5, generator=generator)
    return model


def random_ids(config: Model, batch: int, tokens: int, seed: int = 1) -> torch.Tensor:
    """ids int64 [batch, tokens]."""
    return torch.randint(config.vocab_size, (batch, tokens), generator=torch.Generator().manual_seed(seed))
