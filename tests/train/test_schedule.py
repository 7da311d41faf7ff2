"""La tasa de aprendizaje es una función pura del paso, con la forma que dice la receta."""

from itertools import pairwise
from typing import Literal

import pytest

from enlace.config.schema import Schedule
from enlace.train.schedule import learning_rate_factor

WSD = Schedule(kind="wsd", warmup_steps=4, decay_steps=10, final_ratio=0.1)
COSINE = Schedule(kind="cosine", warmup_steps=4, decay_steps=0, final_ratio=0.1)


def test_first_step_already_learns() -> None:
    assert learning_rate_factor(WSD, 0, 50) == pytest.approx(0.25)


def test_wsd_is_flat_between_warmup_and_decay() -> None:
    assert [learning_rate_factor(WSD, step, 50) for step in range(3, 41)] == [1.0] * 38


def test_wsd_decays_linearly_towards_the_final_ratio() -> None:
    decay = [learning_rate_factor(WSD, step, 50) for step in range(40, 51)]
    assert decay[-1] == pytest.approx(0.1)
    assert {round(a - b, 9) for a, b in pairwise(decay)} == {0.09}


def test_wsd_without_decay_stays_at_one() -> None:
    flat = Schedule(kind="wsd", warmup_steps=0, decay_steps=0, final_ratio=0.0)
    assert [learning_rate_factor(flat, step, 5) for step in range(5)] == [1.0] * 5


def test_cosine_is_halfway_in_the_middle_and_goes_to_the_final_ratio() -> None:
    assert learning_rate_factor(COSINE, 4 + 23, 50) == pytest.approx(0.55)
    assert learning_rate_factor(COSINE, 50, 50) == pytest.approx(0.1)


@pytest.mark.parametrize("kind", ["wsd", "cosine"])
def test_no_step_is_wasted_even_if_the_final_ratio_is_zero(kind: Literal["wsd", "cosine"]) -> None:
    schedule = Schedule(kind=kind, warmup_steps=4, decay_steps=10, final_ratio=0.0)
    assert all(learning_rate_factor(schedule, step, 50) > 0 for step in range(50))


@pytest.mark.parametrize("schedule", [WSD, COSINE])
def test_within_zero_and_one_even_past_the_end(schedule: Schedule) -> None:
    assert all(0 < learning_rate_factor(schedule, step, 50) <= 1 for step in range(80))
