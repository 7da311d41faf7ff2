"""El orden: una biyección por época, siempre la misma, que parece azar."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from enlace.data.order import derive, permute

seeds = st.integers(min_value=0, max_value=2**70)
sizes = st.integers(min_value=1, max_value=5000)


@given(seeds, st.integers(min_value=0, max_value=10**6), sizes)
def test_each_epoch_is_a_bijection(seed: int, epoch: int, size: int) -> None:
    assert np.array_equal(np.sort(permute(seed, epoch, np.arange(size), size)), np.arange(size))


@given(seeds, sizes, st.data())
def test_each_value_depends_only_on_its_own_index(seed: int, size: int, data: st.DataObject) -> None:
    index = data.draw(st.integers(min_value=0, max_value=size - 1))
    assert permute(seed, 0, np.array([index]), size)[0] == permute(seed, 0, np.arange(size), size)[index]


@given(seeds, st.integers(min_value=50, max_value=5000))
def test_epochs_and_seeds_give_different_orders(seed: int, size: int) -> None:
    index = np.arange(size)
    first = permute(seed, 0, index, size)
    for other in (permute(seed, 1, index, size), permute(seed + 1, 0, index, size)):
        assert (first != other).mean() > 0.8


@pytest.mark.parametrize("size", [7, 10, 64, 97])
def test_every_place_receives_every_value_equally_often(size: int) -> None:
    epochs = 40 * size
    orders = np.stack([permute(3, epoch, np.arange(size), size) for epoch in range(epochs)])
    counts = np.stack([np.bincount(column, minlength=size) for column in orders.T])
    expected = epochs / size
    chi_square = ((counts - expected) ** 2 / expected).sum()
    freedom = (size - 1) ** 2
    assert abs(chi_square - freedom) < 5 * np.sqrt(2 * freedom)


def test_neighbours_are_scattered() -> None:
    size = 100_003
    order = permute(0, 0, np.arange(size), size).astype(np.float64)
    assert abs(np.corrcoef(order[:-1], order[1:])[0, 1]) < 0.02
    assert abs(np.corrcoef(order, np.arange(size))[0, 1]) < 0.02


def test_the_order_is_frozen() -> None:
    """Si cambia un solo número, una corrida reanudada vería otros datos."""
    assert permute(0, 0, np.arange(10), 10).tolist() == [3, 2, 4, 1, 7, 6, 9, 8, 5, 0]
    assert permute(1234, 7, np.arange(5), 1000).tolist() == [882, 14, 898, 643, 477]
    assert permute(2**64 + 1, 1, np.array([0, 10**11]), 10**12).tolist() == [875911112248, 422087101579]
    assert derive(0, "mixture") == 12077968803692933133
