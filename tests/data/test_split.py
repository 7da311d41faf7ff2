"""El reparto por documento."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from enlace.data.split import validation_mask

ids = st.lists(st.text(), min_size=2, unique=True)
fractions = st.floats(min_value=0.001, max_value=0.999)


@given(ids, fractions)
def test_two_documents_or_more_leave_something_on_each_side(names: list[str], fraction: float) -> None:
    mask = validation_mask(names, fraction)
    assert mask.any() and not mask.all()


@pytest.mark.parametrize("fraction", [0.01, 0.1, 0.5])
def test_the_share_is_the_fraction(fraction: float) -> None:
    share = validation_mask([f"d{k}" for k in range(20_000)], fraction).mean()
    assert share == pytest.approx(fraction, abs=4 * np.sqrt(fraction / 20_000))


def test_adding_documents_moves_nobody() -> None:
    before = [f"a{k}" for k in range(500)]
    after = [f"b{k}" for k in range(500)] + before
    assert np.array_equal(validation_mask(before, 0.05), validation_mask(after, 0.05)[500:])


def test_copies_of_a_document_stay_together() -> None:
    assert len(set(validation_mask(["a", "b", "a"], 0.001)[[0, 2]].tolist())) == 1


def test_nothing_is_set_aside_without_a_fraction_or_with_a_single_document() -> None:
    assert not validation_mask(["a", "b", "c"], 0.0).any()
    assert not validation_mask(["a", "a"], 0.5).any()
