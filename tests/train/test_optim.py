"""Los grupos de los optimizadores y su estado como tensores."""

from pathlib import Path

import pytest
import torch

from enlace.errors import CorruptDataError
from enlace.model import Transformer
from enlace.train.optim import (
    build_optimizers,
    group_parameters,
    load_state_tensors,
    scale_learning_rates,
    state_tensors,
)
from tests.tiny import tiny_run

MUON = {"momentum": 0.95, "ns_steps": 5}


def make_model(root: Path, *, tied: bool = True) -> Transformer:
    run = tiny_run(root, model__tie_embeddings=tied)
    model = Transformer(run.model)
    model.init_weights(torch.Generator().manual_seed(0))
    return model


@pytest.mark.parametrize("tied", [True, False])
def test_every_parameter_has_one_role(tied: bool, tmp_path: Path) -> None:
    model = make_model(tmp_path, tied=tied)
    names = {id(parameter): name for name, parameter in model.named_parameters()}
    groups = group_parameters(model)
    assert all(names[id(each)].endswith("_proj.weight") for each in groups.matrices)
    assert [names[id(each)] for each in groups.embedding] == ["model.embed_tokens.weight"]
    assert [names[id(each)] for each in groups.head] == ([] if tied else ["lm_head.weight"])
    assert all("norm" in names[id(each)] for each in groups.norms)
    assert sum(map(len, vars(groups).values())) == len(names)


@pytest.mark.parametrize("muon", [None, MUON])
def test_only_matrices_and_a_loose_head_decay_and_each_group_has_its_rate(
    muon: dict[str, float] | None, tmp_path: Path
) -> None:
    changes = {"learning_rate": 0.1, "embedding_learning_rate": 0.2, "head_learning_rate": 0.3}
    run = tiny_run(tmp_path, **{f"train__optimizer__{k}": v for k, v in {**changes, "muon": muon}.items()})
    optimizers = build_optimizers(make_model(tmp_path, tied=False), run.train.optimizer, muon_dtype=torch.float32)
    seen = [(group["lr"], group["weight_decay"]) for each in optimizers for group in each.param_groups]
    assert seen == [(0.1, 0.1), (0.2, 0.0), (0.3, 0.1), (3e-3, 0.0)]
    scale_learning_rates(optimizers, 0.5)
    halved = [group["lr"] for each in optimizers for group in each.param_groups]
    assert halved == [0.05, 0.1, 0.15, 1.5e-3]


def test_the_state_born_early_steps_like_a_lazy_one(tmp_path: Path) -> None:
    config = tiny_run(tmp_path).train.optimizer
    ours, theirs = make_model(tmp_path), make_model(tmp_path)
    groups = group_parameters(theirs)
    lazy = torch.optim.AdamW(
        [
            {"params": groups.matrices, "weight_decay": config.weight_decay},
            {"params": [*groups.embedding, *groups.norms], "weight_decay": 0.0},
        ],
        lr=config.learning_rate,
        betas=(config.beta1, config.beta2),
        eps=config.eps,
        fused=True,
    )
    (early,) = build_optimizers(ours, config, muon_dtype=torch.float32)
    for model, optimizer in ((ours, early), (theirs, lazy)):
        for _ in range(3):
            model(torch.arange(16).view(2, 8)).square().mean().backward()
            optimizer.step()
            optimizer.zero_grad()
    for left, right in zip(ours.parameters(), theirs.parameters(), strict=True):
        assert torch.equal(left, right)


@pytest.mark.parametrize("muon", [None, MUON])
def test_the_state_goes_and_comes_back_whole(muon: dict[str, float] | None, tmp_path: Path) -> None:
    config = tiny_run(tmp_path, train__optimizer__muon=muon).train.optimizer
    first, second = make_model(tmp_path), make_model(tmp_path)
    before = build_optimizers(first, config, muon_dtype=torch.float32)
    first(torch.arange(16).view(2, 8)).square().mean().backward()
    for optimizer in before:
        optimizer.step()
    saved = state_tensors(before, first.named_parameters())
    after = build_optimizers(second, config, muon_dtype=torch.float32)
    load_state_tensors(after, second.named_parameters(), saved)
    restored = state_tensors(after, second.named_parameters())
    assert restored.keys() == saved.keys()
    assert all(torch.equal(restored[name], saved[name]) for name in saved)
    assert any(name.endswith(".momentum") for name in saved) == (muon is not None)


def test_a_state_from_another_model_is_refused(tmp_path: Path) -> None:
    model = make_model(tmp_path)
    optimizers = build_optimizers(model, tiny_run(tmp_path).train.optimizer, muon_dtype=torch.float32)
    tensors = state_tensors(optimizers, model.named_parameters())
    tensors.pop("model.norm.weight.exp_avg")
    with pytest.raises(CorruptDataError) as caught:
        load_state_tensors(optimizers, model.named_parameters(), tensors)
    assert "model.norm.weight.exp_avg" in caught.value.where
