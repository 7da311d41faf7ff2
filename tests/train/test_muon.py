"""Muon contra su definición (la SVD) y contra el de torch."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn

from enlace.train.muon import Muon, orthogonalize, orthogonalize_all

OPTIONS = {"lr": 0.02, "momentum": 0.95, "weight_decay": 0.1, "ns_steps": 5, "dtype": torch.float32}


def random_matrix(rows: int, columns: int, seed: int = 0) -> Tensor:
    return torch.randn(rows, columns, generator=torch.Generator().manual_seed(seed))


def polar_factor(matrix: Tensor) -> Tensor:
    """La matriz ortogonal más cercana, de la SVD."""
    u, _, vh = torch.linalg.svd(matrix, full_matrices=False)
    return u @ vh


@given(rows=st.integers(1, 24), columns=st.integers(1, 24), seed=st.integers(0, 2**31))
@settings(max_examples=50, deadline=None)
def test_it_keeps_the_singular_vectors_and_brings_singular_values_near_one(rows: int, columns: int, seed: int) -> None:
    # Con valores singulares entre 0,3 y 1 (de una Gaussiana cuadrada el menor puede ser casi cero y tarda más).
    u, _, vh = torch.linalg.svd(random_matrix(rows, columns, seed), full_matrices=False)
    matrix = u @ torch.diag(torch.linspace(0.3, 1.0, min(rows, columns))) @ vh
    (update,) = orthogonalize_all([matrix], 5, torch.float32)
    values = torch.linalg.svdvals(update)
    assert 0.6 < values.min() and values.max() < 1.3
    cosine = (update * polar_factor(matrix)).sum() / update.norm() / polar_factor(matrix).norm()
    assert cosine > 0.97


def test_matrices_of_the_same_shape_or_transposed_together_equal_each_one_alone() -> None:
    matrices = [random_matrix(8, 8, 1), random_matrix(8, 20, 2), random_matrix(20, 8, 3), random_matrix(8, 8, 4)]
    together = orthogonalize_all(matrices, 5, torch.float32)
    for matrix, update in zip(matrices, together, strict=True):
        (alone,) = orthogonalize_all([matrix], 5, torch.float32)
        torch.testing.assert_close(update, alone, rtol=1e-4, atol=1e-5)
        assert update.shape == matrix.shape


def test_a_matrix_of_zeros_stays_zero() -> None:
    assert not orthogonalize(torch.zeros(2, 4, 6), 5).any()


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("exponent", [-15, -20, -25, -38])
def test_a_gradient_almost_zero_moves_nothing_too_far(exponent: int, dtype: torch.dtype) -> None:
    (update,) = orthogonalize_all([random_matrix(6, 9) * 10.0**exponent], 5, dtype)
    assert update.isfinite().all() and torch.linalg.svdvals(update).max() < 1.3


@pytest.mark.parametrize("shape", [(16, 16), (48, 16), (16, 48)])
def test_steps_agree_with_the_muon_of_torch_up_to_its_bfloat16(shape: tuple[int, int]) -> None:
    ours, theirs = nn.Parameter(random_matrix(*shape)), nn.Parameter(random_matrix(*shape))
    mine = Muon([ours], **OPTIONS)
    reference = torch.optim.Muon([theirs], lr=0.02, momentum=0.95, weight_decay=0.1, adjust_lr_fn="original")
    start = ours.detach().clone()
    for step in range(4):
        gradient = random_matrix(*shape, seed=step + 1)
        ours.grad, theirs.grad = gradient.clone(), gradient.clone()
        mine.step()
        reference.step()
    moved = (theirs - start).norm()
    assert (ours - theirs).norm() < 0.03 * moved


def test_what_has_no_gradient_is_not_touched() -> None:
    touched, untouched = nn.Parameter(random_matrix(4, 4)), nn.Parameter(random_matrix(4, 4))
    before = untouched.detach().clone()
    optimizer = Muon([touched, untouched], **OPTIONS)
    touched.grad = torch.ones(4, 4)
    optimizer.step()
    assert torch.equal(untouched, before)
