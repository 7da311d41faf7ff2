"""La pérdida por trozos es la entropía cruzada de siempre, sin que los logits lleguen a existir juntos."""

from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from enlace.model.loss import IGNORE, chunked_cross_entropy

Z_LOSS = 0.01


def problem(n: int = 37, d: int = 12, v: int = 29, dtype: torch.dtype = torch.float32) -> tuple[Tensor, Tensor, Tensor]:
    """hidden, weight y targets; los objetivos 0, 3 y un tercio del resto no cuentan."""
    generator = torch.Generator().manual_seed(0)
    hidden = torch.randn(n, d, generator=generator, dtype=dtype, requires_grad=True)
    weight = torch.randn(v, d, generator=generator, dtype=dtype, requires_grad=True)
    targets = torch.randint(v, (n,), generator=generator)
    targets[torch.rand(n, generator=generator) < 0.3] = IGNORE
    targets[[0, 3]] = IGNORE
    return hidden, weight, targets


def plain(hidden: Tensor, weight: Tensor, targets: Tensor, z_loss: float = Z_LOSS) -> tuple[Tensor, Tensor]:
    logits = hidden @ weight.T
    nll = F.cross_entropy(logits, targets, ignore_index=IGNORE, reduction="sum")
    return nll, z_loss * logits[targets != IGNORE].logsumexp(-1).square().sum()


def gradients(total: Tensor, *inputs: Tensor) -> tuple[Tensor, ...]:
    return torch.autograd.grad(total, inputs)


@pytest.mark.parametrize("z_loss", [0.0, Z_LOSS])
@pytest.mark.parametrize("chunk_tokens", [1, 5, 37, 1000])
@pytest.mark.parametrize("upstream", [1.0, 3.5, 2.0**-12])
def test_equals_cross_entropy_in_value_and_gradient(z_loss: float, chunk_tokens: int, upstream: float) -> None:
    hidden, weight, targets = problem()
    nll, z = chunked_cross_entropy(hidden, weight, targets, z_loss=z_loss, chunk_tokens=chunk_tokens)
    expected_nll, expected_z = plain(hidden, weight, targets, z_loss)
    torch.testing.assert_close(nll, expected_nll, rtol=1e-6, atol=0)
    torch.testing.assert_close(z, expected_z, rtol=1e-6, atol=0)
    actual = gradients((nll + z) * upstream, hidden, weight)
    expected = gradients((expected_nll + expected_z) * upstream, hidden, weight)
    for got, want in zip(actual, expected, strict=True):
        assert (got - want).abs().max() <= 1e-6 * want.abs().max()


@pytest.mark.parametrize("chunk_tokens", [4, 37])
def test_gradient_is_exact_in_float64(chunk_tokens: int) -> None:
    hidden, weight, targets = problem(dtype=torch.float64)

    def total(hidden: Tensor, weight: Tensor) -> Tensor:
        nll, z = chunked_cross_entropy(hidden, weight, targets, z_loss=Z_LOSS, chunk_tokens=chunk_tokens)
        return (nll + z) / 7

    assert torch.autograd.gradcheck(total, (hidden, weight))


def test_a_chunk_where_nothing_counts_adds_nothing() -> None:
    hidden, weight, targets = problem()
    targets[:8] = IGNORE
    nll, z = chunked_cross_entropy(hidden, weight, targets, z_loss=Z_LOSS, chunk_tokens=8)
    rest, rest_z = chunked_cross_entropy(hidden[8:], weight, targets[8:], z_loss=Z_LOSS, chunk_tokens=8)
    torch.testing.assert_close((nll, z), (rest, rest_z))
    assert gradients(nll + z, hidden)[0][:8].eq(0).all()


@pytest.mark.parametrize("n", [0, 6])
def test_nothing_counts_gives_zero_and_not_nan(n: int) -> None:
    hidden, weight, _ = problem()
    targets = torch.full((n,), IGNORE)
    nll, z = chunked_cross_entropy(hidden[:n], weight, targets, z_loss=Z_LOSS, chunk_tokens=4)
    assert nll.item() == z.item() == 0.0
    assert gradients(nll + z, weight)[0].eq(0).all()


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_under_autocast_the_sums_and_the_weight_gradient_stay_in_float32(dtype: torch.dtype) -> None:
    hidden, weight, targets = problem(n=200)
    exact_nll, exact_z = plain(hidden, weight, targets)
    with torch.autocast("cpu", dtype):
        nll, z = chunked_cross_entropy(hidden, weight, targets, z_loss=Z_LOSS, chunk_tokens=16)
    assert nll.dtype == z.dtype == torch.float32
    tolerance = 4 * torch.finfo(dtype).eps
    torch.testing.assert_close(nll, exact_nll, rtol=tolerance, atol=0)
    torch.testing.assert_close(z, exact_z, rtol=tolerance, atol=0)
    scale = 1024.0
    actual = gradients((nll + z) * scale, hidden, weight)
    expected = gradients((exact_nll + exact_z) * scale, hidden, weight)
    for got, want in zip(actual, expected, strict=True):
        assert got.dtype == torch.float32
        assert (got - want).norm() <= tolerance * want.norm()


def test_autocast_multiplies_in_its_own_type() -> None:
    hidden, weight, targets = problem()
    exact = chunked_cross_entropy(hidden, weight, targets, z_loss=0.0, chunk_tokens=8)[0]
    with torch.autocast("cpu", torch.bfloat16):
        reduced = chunked_cross_entropy(hidden, weight, targets, z_loss=0.0, chunk_tokens=8)[0]
    assert reduced != exact


def test_weight_gradient_of_many_chunks_does_not_lose_small_terms() -> None:
    # Sumar 0,5 de uno en uno en float16 se queda parado en 1024: la mitad del total.
    hidden = torch.ones(4096, 1, dtype=torch.float16)
    weight = torch.zeros(2, 1, dtype=torch.float16, requires_grad=True)
    nll, z = chunked_cross_entropy(hidden, weight, torch.zeros(4096, dtype=torch.long), z_loss=0.0, chunk_tokens=1)
    (grad,) = gradients((nll + z) / 4096, weight)
    assert grad.tolist() == [[-0.5], [0.5]]


def test_huge_logits_do_not_overflow() -> None:
    hidden = torch.tensor([[1e4], [-1e4]], requires_grad=True)
    weight = torch.tensor([[1.0], [-1.0]], requires_grad=True)
    nll, z = chunked_cross_entropy(hidden, weight, torch.tensor([1, 1]), z_loss=0.0, chunk_tokens=2)
    assert nll.item() == 2e4
    assert all(grad.isfinite().all() for grad in gradients(nll + z, hidden, weight))


def test_non_finite_hidden_shows_in_the_loss() -> None:
    hidden, weight, targets = problem()
    broken = hidden.detach().clone()
    broken[1, 2] = torch.nan
    targets[1] = 0
    nll, _ = chunked_cross_entropy(broken, weight, targets, z_loss=0.0, chunk_tokens=8)
    assert nll.isnan()


def test_different_factors_are_refused_instead_of_giving_a_wrong_gradient() -> None:
    hidden, weight, targets = problem()
    nll, z = chunked_cross_entropy(hidden, weight, targets, z_loss=Z_LOSS, chunk_tokens=8)
    with pytest.raises(ValueError, match="mismo factor"):
        (nll + 2 * z).backward()


def test_equal_factors_applied_apart_are_accepted() -> None:
    hidden, weight, targets = problem()
    together = sum(chunked_cross_entropy(hidden, weight, targets, z_loss=Z_LOSS, chunk_tokens=8)) / 3
    apart = sum(x / 3 for x in chunked_cross_entropy(hidden, weight, targets, z_loss=Z_LOSS, chunk_tokens=8))
    assert torch.equal(gradients(together, weight)[0], gradients(apart, weight)[0])


class Recorder(TorchDispatchMode):
    """Apunta las operaciones y el mayor número de elementos que ha tenido la salida de una."""

    def __init__(self) -> None:
        super().__init__()
        self.operations: list[str] = []
        self.largest = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        self.operations.append(str(func))
        for value in result if isinstance(result, tuple | list) else (result,):
            if isinstance(value, Tensor):
                self.largest = max(self.largest, value.numel())
        return result


@pytest.mark.parametrize("autocast", [False, True])
def test_full_logits_never_exist(autocast: bool) -> None:
    n, d, v, chunk = 256, 4, 64, 16
    hidden, weight, targets = problem(n, d, v)
    with Recorder() as chunked, torch.autocast("cpu", torch.bfloat16, enabled=autocast):
        nll, z = chunked_cross_entropy(hidden, weight, targets, z_loss=Z_LOSS, chunk_tokens=chunk)
        (nll + z).backward()
    assert chunked.largest <= max(chunk * v, n * d, v * d)
    with Recorder() as whole:
        sum(plain(hidden, weight, targets)).backward()
    assert whole.largest >= n * v


def test_without_gradient_its_products_are_not_computed() -> None:
    hidden, weight, targets = problem()
    with torch.no_grad(), Recorder() as recorder:
        nll, z = chunked_cross_entropy(hidden, weight, targets, z_loss=Z_LOSS, chunk_tokens=2)
    assert len([name for name in recorder.operations if "mm" in name]) == 19  # una por trozo: solo los logits
    assert nll.grad_fn is None and z.grad_fn is None
    torch.testing.assert_close(nll, plain(hidden, weight, targets)[0])
