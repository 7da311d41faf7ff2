"""Casi duplicados: los retocados se reconocen en la medida prometida y los distintos no."""

import random
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from enlace.config import load_corpus
from enlace.config.schema import Duplicates
from enlace.corpus.clean.words import word_ids
from enlace.corpus.near import first_of_each, groups, signature

ROOT = Path(__file__).parents[2]
WORDS = [f"palabra{n}" for n in range(4000)]


@pytest.fixture
def config(monkeypatch: pytest.MonkeyPatch) -> Duplicates:
    monkeypatch.chdir(ROOT)
    return load_corpus("es").duplicates


def text(dice: random.Random) -> list[str]:
    return dice.choices(WORDS, k=300)


def edited(words: list[str], share: float, dice: random.Random) -> list[str]:
    """El texto con esa parte de sus palabras cambiada, en tramos seguidos como al corregir una frase."""
    changed, left = list(words), round(share * len(words))
    while left > 0:
        length = min(left, 15)
        start = dice.randrange(len(words) - length)
        changed[start : start + length] = dice.choices(WORDS, k=length)
        left -= length
    return changed


def found(config: Duplicates, share: float, count: int = 150) -> float:
    """Qué parte de los textos retocados cae en el grupo de su original; los originales, entre sí, no se juntan."""
    dice = random.Random(5)
    originals = [text(dice) for _ in range(count)]
    copies = [edited(words, share, dice) for words in originals]
    signatures = np.stack([signature(word_ids(words), config) for words in (*originals, *copies)])
    heads = groups(signatures, config)
    assert (heads[:count] == np.arange(count)).all()
    return float((heads[count:] == np.arange(count)).mean())


@pytest.mark.parametrize(("share", "least"), [(0.0, 1.0), (0.05, 0.95), (0.1, 0.7)])
def test_edited_copies_are_found(config: Duplicates, share: float, least: float) -> None:
    assert found(config, share) >= least


def test_a_text_changed_in_half_is_another_text(config: Duplicates) -> None:
    assert found(config, 0.5) == 0.0


def test_short_and_empty_texts_have_a_signature(config: Duplicates) -> None:
    for words in ([], ["hola"], ["hola", "hola"]):
        assert signature(word_ids(words), config).shape == (config.bands * config.rows,)


@settings(max_examples=50)
@given(st.lists(st.integers(0, 5), max_size=30))
def test_the_first_of_each_value_is_marked(values: list[int]) -> None:
    marked = first_of_each(np.array(values, np.uint64))
    assert [n for n, first in enumerate(marked) if first] == [values.index(each) for each in dict.fromkeys(values)]
