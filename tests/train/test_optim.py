"""Los grupos de AdamW y su estado como tensores."""

from pathlib import Path

import pytest
import torch

from enlace.errors import CorruptDataError
from enlace.model import Transformer
from enlace.train.optim import build_optimizer, load_state_tensors, split_parameters, state_tensors
from tests.tiny import tiny_run


def make_model(root: Path, *, tied: bool) -> Transformer:
    run = tiny_run(root, model__tie_embeddings=tied)
    model = Transformer(run.model)
    model.init_weights(torch.Generator().manual_seed(0))
    return model


@pytest.mark.parametrize("tied", [True, False])
def test_matrices_decay_and_embeddings_and_norms_do_not(tied: bool, tmp_path: Path) -> None:
    model = make_model(tmp_path, tied=tied)
    names = {id(parameter): name for name, parameter in model.named_parameters()}
    decayed, plain = split_parameters(model)
    decayed_names = {names[id(parameter)] for parameter in decayed}
    plain_names = {names[id(parameter)] for parameter in plain}
    assert all(name.endswith("_proj.weight") or name == "lm_head.weight" for name in decayed_names)
    assert all("norm" in name or "embed" in name for name in plain_names)
    assert len(decayed) + len(plain) == len(names)


def test_the_groups_carry_the_decay_of_the_recipe(tmp_path: Path) -> None:
    config = tiny_run(tmp_path).train.optimizer
    optimizer = build_optimizer(make_model(tmp_path, tied=True), config)
    assert [group["weight_decay"] for group in optimizer.param_groups] == [0.1, 0.0]
    assert all(group["fused"] for group in optimizer.param_groups)


def test_the_state_born_early_steps_like_a_lazy_one(tmp_path: Path) -> None:
    config = tiny_run(tmp_path).train.optimizer
    ours, theirs = make_model(tmp_path, tied=True), make_model(tmp_path, tied=True)
    decayed, plain = split_parameters(theirs)
    lazy = torch.optim.AdamW(
        [{"params": decayed, "weight_decay": 0.1}, {"params": plain, "weight_decay": 0.0}],
        lr=config.learning_rate,
        betas=(config.beta1, config.beta2),
        eps=config.eps,
        fused=True,
    )
    early = build_optimizer(ours, config)
    for model, optimizer in ((ours, early), (theirs, lazy)):
        for _ in range(3):
            model(torch.arange(16).view(2, 8)).square().mean().backward()
            optimizer.step()
            optimizer.zero_grad()
    for left, right in zip(ours.parameters(), theirs.parameters(), strict=True):
        assert torch.equal(left, right)


def test_a_state_from_another_model_is_refused(tmp_path: Path) -> None:
    model = make_model(tmp_path, tied=True)
    optimizer = build_optimizer(model, tiny_run(tmp_path).train.optimizer)
    tensors = state_tensors(optimizer, model.named_parameters())
    tensors.pop("model.norm.weight.exp_avg")
    with pytest.raises(CorruptDataError) as caught:
        load_state_tensors(optimizer, model.named_parameters(), tensors)
    assert "model.norm.weight.exp_avg" in caught.value.where
