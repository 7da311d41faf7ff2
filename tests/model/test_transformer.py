"""El grafo: causalidad, inicialización, dropout, atención forzada y errores."""

import math

import pytest
import torch
from torch import Tensor

from enlace.errors import InstallationError, UsageError
from enlace.model import Transformer
from tests.model.shapes import random_ids, random_model, shape


def test_future_tokens_do_not_change_past_logits() -> None:
    config = shape()
    model = random_model(config)
    ids = random_ids(config, 2, 16)
    changed = ids.clone()
    changed[:, 9] = (changed[:, 9] + 1) % config.vocab_size
    before, after = model(ids), model(changed)
    torch.testing.assert_close(before[:, :9], after[:, :9], rtol=0, atol=1e-5)
    assert (before[:, 9:] - after[:, 9:]).abs().amax(-1).min() > 1e-3


def test_relative_positions_matter() -> None:
    config = shape(n_layers=1)
    model = random_model(config)
    first = model(torch.tensor([[3, 4, 5, 6]]))
    second = model(torch.tensor([[4, 3, 5, 6]]))
    assert (first[:, -1] - second[:, -1]).abs().max() > 1e-3


@pytest.mark.parametrize("n_kv_heads", [1, 2, 4])
def test_attention_backends_agree_in_value_and_gradient(n_kv_heads: int) -> None:
    config = shape(n_kv_heads=n_kv_heads)
    ids = random_ids(config, 2, 32)

    def logits_and_gradients(attention: str) -> list[Tensor]:
        model = random_model(config, attention=attention)
        logits = model(ids)
        logits.square().mean().backward()
        return [logits.detach(), *(p.grad for p in model.parameters() if p.grad is not None)]

    for math_, flash in zip(logits_and_gradients("math"), logits_and_gradients("flash"), strict=True):
        torch.testing.assert_close(flash, math_, rtol=1e-4, atol=1e-5)


def test_forced_backend_is_the_one_that_runs() -> None:
    config = shape(n_layers=1)
    for attention, kernel in (("flash", "_scaled_dot_product_flash_attention"), ("math", "aten::_softmax")):
        with torch.profiler.profile() as profile:
            random_model(config, attention=attention)(random_ids(config, 1, 8))
        names = [event.key for event in profile.key_averages()]
        assert any(kernel in name for name in names), (attention, names)


def test_unavailable_backend_is_an_error_and_not_another_backend() -> None:
    model = random_model(shape(), attention="mem_efficient")
    with pytest.raises(InstallationError) as caught:
        model(random_ids(shape(), 1, 4))
    assert "mem_efficient" in caught.value.what
    assert "hardware.attention" in caught.value.fix


def test_other_runtime_errors_pass_untouched() -> None:
    model = random_model(shape())
    model.model.norm.weight = torch.nn.Parameter(torch.ones(5))
    with pytest.raises(RuntimeError, match=r"normalized_shape|size"):
        model(random_ids(shape(), 1, 4))


def test_init_weights_is_normal_scaled_down_on_residual_outputs() -> None:
    config = shape(d_model=128, d_ff=256, n_layers=8, init_std=0.05, tie_embeddings=False)
    model = Transformer(config)
    model.init_weights(torch.Generator().manual_seed(3))
    for name, parameter in model.named_parameters():
        if parameter.ndim == 1:
            assert parameter.eq(1).all(), name
            continue
        residual = "o_proj" in name or "down_proj" in name
        expected = 0.05 / math.sqrt(16) if residual else 0.05
        assert parameter.std().item() == pytest.approx(expected, rel=0.1), name
        assert abs(parameter.mean().item()) < 0.1 * expected, name


def test_init_weights_depends_only_on_its_generator() -> None:
    models = []
    for global_seed in (1, 2):
        torch.manual_seed(global_seed)
        models.append(Transformer(shape()))
        models[-1].init_weights(torch.Generator().manual_seed(3))
    for a, b in zip(models[0].parameters(), models[1].parameters(), strict=True):
        assert torch.equal(a, b)


def test_building_the_model_leaves_the_global_generator_alone() -> None:
    torch.manual_seed(0)
    before = torch.get_rng_state()
    Transformer(shape(tie_embeddings=False), dropout=0.5)
    assert torch.equal(before, torch.get_rng_state())


def test_dropout_acts_only_in_training_and_follows_the_global_generator() -> None:
    config = shape()
    plain, model = random_model(config), random_model(config, dropout=0.4)
    ids = random_ids(config, 2, 8)
    assert torch.equal(model.eval()(ids), plain(ids))
    model.train()
    torch.manual_seed(5)
    first, second = model(ids), model(ids)
    torch.manual_seed(5)
    assert torch.equal(model(ids), first)
    assert not torch.equal(first, second)


def test_zero_dropout_does_not_touch_the_global_generator() -> None:
    model = random_model(shape()).train()
    before = torch.get_rng_state()
    model(random_ids(shape(), 1, 8))
    assert torch.equal(before, torch.get_rng_state())


def test_sequence_longer_than_the_context_is_refused() -> None:
    model = random_model(shape())
    with pytest.raises(UsageError, match="33 tokens y el contexto es de 32"):
        model.hidden(random_ids(shape(), 1, 33))


def test_tied_head_is_the_embedding_and_untied_is_not() -> None:
    tied, untied = random_model(shape()), random_model(shape(tie_embeddings=False))
    assert tied.head_weight is tied.model.embed_tokens.weight
    assert "lm_head.weight" not in tied.state_dict()
    assert untied.head_weight is not untied.model.embed_tokens.weight
    assert untied.state_dict()["lm_head.weight"].shape == (61, 24)


def test_rope_tables_are_not_saved() -> None:
    assert not [name for name in random_model(shape()).state_dict() if "rope" in name]


def test_reduced_precision_keeps_the_residual_stream_in_float32() -> None:
    config = shape()
    model = random_model(config)
    ids = random_ids(config, 2, 16)
    exact = model.hidden(ids)
    with torch.autocast("cpu", torch.bfloat16):
        reduced = model.hidden(ids)
    assert reduced.dtype == torch.float32
    assert 0 < (reduced - exact).abs().max() < 0.5


@pytest.mark.parametrize("attention", ["math", "flash"])
def test_weights_converted_to_reduced_precision_work_throughout(attention: str) -> None:
    config = shape()
    ids = random_ids(config, 2, 16)
    exact = random_model(config)(ids)
    reduced = random_model(config, attention=attention).to(torch.bfloat16)(ids)
    assert reduced.dtype == torch.bfloat16
    assert 0 < (reduced - exact).abs().mean() < 0.05 * exact.abs().mean()
