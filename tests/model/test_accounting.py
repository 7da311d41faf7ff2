"""Las cuentas contra el modelo de verdad: módulos, contador de FLOP de torch y tensores guardados."""

from typing import Any

import pytest
import torch
from torch import Tensor
from torch.utils.flop_counter import FlopCounterMode

from enlace.model import Transformer, accounting
from tests.model.shapes import random_ids, random_model, shape

SHAPES: list[dict[str, Any]] = [
    {},
    {"tie_embeddings": False},
    {"n_kv_heads": 1, "n_layers": 3},
    {"d_ff": 96, "head_dim": 16},
]


@pytest.mark.parametrize("changes", SHAPES)
def test_parameters_equal_the_modules(changes: dict[str, Any]) -> None:
    config = shape(**changes)
    with torch.device("meta"):
        model = Transformer(config)
    assert accounting.n_parameters(config) == sum(p.numel() for p in model.parameters())
    linear = sum(m.weight.numel() for m in model.modules() if isinstance(m, torch.nn.Linear))
    tied_head = model.head_weight.numel() if config.tie_embeddings else 0
    assert accounting.n_matmul_parameters(config) == linear + tied_head


@pytest.mark.parametrize("changes", SHAPES)
@pytest.mark.parametrize("tokens", [8, 32])
def test_flops_equal_what_torch_counts_forward_and_backward(changes: dict[str, Any], tokens: int) -> None:
    config = shape(**changes)
    model = random_model(config)
    ids = random_ids(config, 2, tokens)
    with FlopCounterMode(display=False) as counter:
        torch.nn.functional.cross_entropy(model(ids).flatten(0, 1), ids.flatten()).backward()
    assert counter.get_total_flops() == 2 * tokens * accounting.flops_per_token(config, tokens)


def test_cache_holds_keys_and_values_of_every_layer() -> None:
    config = shape(n_layers=3, n_kv_heads=2, head_dim=10)
    with torch.device("meta"):
        values = [torch.empty(2, 7, 10, dtype=torch.float16) for _layer in range(3) for _key_or_value in range(2)]
    assert accounting.cache_bytes(config, 7, 2) == sum(tensor.nbytes for tensor in values)


def saved_bytes(model: Transformer, ids: Tensor) -> int:
    """Bytes que autograd guarda en la ida, sin los pesos ni las tablas."""
    own = {t.untyped_storage().data_ptr() for t in (*model.parameters(), *model.buffers())}
    saved: dict[int, Tensor] = {}

    def keep(tensor: Tensor) -> Tensor:
        saved[tensor.untyped_storage().data_ptr()] = tensor
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
        model.hidden(ids)
    return sum(t.untyped_storage().nbytes() for address, t in saved.items() if address not in own)


@pytest.mark.parametrize("attention", ["math", "flash"])
@pytest.mark.parametrize("changes", [{}, {"n_kv_heads": 1}, {"d_ff": 400}, {"n_layers": 6, "n_heads": 8}])
def test_activations_are_within_a_tenth_of_what_autograd_saves(attention: Any, changes: dict[str, Any]) -> None:
    config = shape(**{"d_model": 64, "head_dim": 16, "d_ff": 128, "max_sequence_length": 128} | changes)
    model = random_model(config, attention=attention)
    head_and_loss = 1 * config.vocab_size * 12 + 4 * config.vocab_size * config.d_model
    estimated = accounting.activation_bytes(config, 4, 128, 4, 1, attention) - head_and_loss
    assert estimated == pytest.approx(saved_bytes(model, random_ids(config, 4, 128)), rel=0.1)
