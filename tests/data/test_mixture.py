"""La mezcla: función pura del contador, cuotas exactas, y cada fuente entera antes de repetir."""

from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from enlace.data.byte_source import ByteSource
from enlace.data.mixture import BLOCK, Mixture
from enlace.errors import ConfigError, NotFoundError

T = 4


@dataclass(frozen=True)
class Numbered:
    """Fuente de mentira: su secuencia k es [número, k, k, k, k], así que un lote dice de dónde salió cada fila."""

    number: int
    size: int
    n_bytes: int = 10

    @property
    def name(self) -> str:
        return f"fuente{self.number}"

    @property
    def sha256(self) -> str:
        return ""

    @property
    def n_tokens(self) -> int:
        return self.size * T + 1

    def n_samples(self, sequence_length: int) -> int:
        return self.size

    def windows(self, indices: NDArray[np.int64], sequence_length: int) -> NDArray[np.uint16]:
        assert ((indices >= 0) & (indices < self.size)).all()
        rows = np.repeat(indices[:, None], sequence_length + 1, axis=1).astype(np.uint16)
        rows[:, 0] = self.number
        return rows


@st.composite
def mixtures(draw: st.DrawFn) -> Mixture:
    weights = draw(st.lists(st.floats(min_value=0.1, max_value=10), min_size=1, max_size=4))
    sizes = draw(st.lists(st.integers(1, 60), min_size=len(weights), max_size=len(weights)))
    return Mixture([Numbered(number, size) for number, size in enumerate(sizes)], weights)


@given(mixtures(), st.integers(0, 3 * BLOCK), st.integers(0, 9), st.integers(0, 9), st.integers(0, 2**32))
def test_the_order_does_not_depend_on_how_it_is_cut(m: Mixture, start: int, left: int, right: int, seed: int) -> None:
    whole = m.batch(start, left + right, T, seed)
    assert np.array_equal(whole[:left], m.batch(start, left, T, seed))
    assert np.array_equal(whole[left:], m.batch(start + left, right, T, seed))


def test_blocks_join_without_a_seam() -> None:
    mixture = Mixture([Numbered(0, 7), Numbered(1, 5)], [2, 1])
    whole = mixture.batch(0, 2 * BLOCK + 10, T, 0)
    parts = [mixture.batch(start, 17, T, 0) for start in range(0, 2 * BLOCK, 17)]
    assert np.array_equal(whole[: 17 * len(parts)], np.concatenate(parts)[: len(whole)])


@given(st.lists(st.floats(min_value=0.05, max_value=20), min_size=1, max_size=5), st.integers(0, 2**32))
def test_any_prefix_is_within_a_block_of_its_share(weights: list[float], seed: int) -> None:
    mixture = Mixture([Numbered(number, 50) for number in range(len(weights))], weights)
    source_of = mixture.batch(0, 2 * BLOCK, T, seed)[:, 0]
    share = np.array(weights) / sum(weights)
    taken = np.cumsum(source_of[:, None] == np.arange(len(weights)), axis=0)
    ideal = share * np.arange(1, len(source_of) + 1)[:, None]
    assert np.abs(taken - ideal).max() < BLOCK / 10
    assert np.abs(taken[BLOCK - 1] - ideal[BLOCK - 1]).max() < 1
    assert np.array_equal(taken[2 * BLOCK - 1], 2 * taken[BLOCK - 1])


def test_within_a_block_the_sources_are_well_mixed() -> None:
    source_of = Mixture([Numbered(0, 50), Numbered(1, 50)], [3, 1]).batch(0, BLOCK, T, 1)[:, 0]
    per_hundred = source_of.reshape(10, 100).sum(axis=1)
    assert per_hundred.min() > 8
    assert per_hundred.max() < 45


@given(mixtures(), st.integers(0, 2**32))
def test_every_source_is_seen_whole_before_any_repetition(mixture: Mixture, seed: int) -> None:
    rows = mixture.batch(0, BLOCK + 50, T, seed)
    for number, source in enumerate(mixture.sources):
        size = source.n_samples(T)
        seen = rows[rows[:, 0] == number, 1]
        for epoch in range(len(seen) // size):
            assert sorted(seen[epoch * size : (epoch + 1) * size]) == list(range(size))


def test_another_seed_gives_another_order() -> None:
    mixture = Mixture([Numbered(0, 500)], [1.0])
    assert not np.array_equal(mixture.batch(0, 100, T, 0), mixture.batch(0, 100, T, 1))


def test_the_mixed_order_is_frozen() -> None:
    mixture = Mixture([Numbered(0, 30), Numbered(1, 9)], [0.7, 0.3])
    assert mixture.batch(995, 10, T, 7)[:, :2].tolist() == [
        [1, 1],
        [1, 0],
        [0, 10],
        [1, 3],
        [0, 28],
        [0, 20],
        [0, 6],
        [0, 29],
        [1, 7],
        [0, 12],
    ]


def test_a_sequence_longer_than_a_source_says_what_to_change() -> None:
    mixture = Mixture([ByteSource("corta", [b"hola"])], [1.0])
    assert mixture.batch(0, 1, 4, 0).tolist() == [[*b"hola", 256]]
    with pytest.raises(ConfigError) as error:
        mixture.batch(0, 1, 5, 0)
    assert "«corta» tiene 5 tokens" in error.value.why
    assert "train.sequence_length" in error.value.why
    assert "4 o menos" in error.value.why


def test_a_weight_that_would_never_be_drawn_is_refused() -> None:
    with pytest.raises(ConfigError, match="1 problema") as error:
        Mixture([Numbered(0, 5), Numbered(1, 5)], [1.0, 1e-4])
    assert "fuente1" in error.value.where


def test_an_empty_validation_explains_itself() -> None:
    with pytest.raises(NotFoundError) as error:
        Mixture([], []).batch(0, 1, T, 0)
    assert "validation_fraction" in error.value.why


def test_bytes_per_token_follows_the_weights() -> None:
    dense, sparse = Numbered(0, 25, n_bytes=404), Numbered(1, 25, n_bytes=101)  # 4 y 1 bytes por token
    assert Mixture([dense, sparse], [3, 1]).bytes_per_token == pytest.approx(0.75 * 4 + 0.25 * 1)
