"""El texto ajeno sale limpio, marcado y entendible."""

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from enlace.agent.untrusted import Untrusted, untrusted

INVISIBLE = (
    "\u200b\u200c\u200d\u200e\u200f\u202a\u202e\u2060\u2066\ufeff\ufe0f\u00ad\U000e0001\U000e0041\U000e007f\U000e0100"
)


@pytest.mark.parametrize(
    ("text", "clean"),
    [
        ("  Ñandú\t y\u00a0 pingüino  ", "Ñandú y pingüino"),
        ("uno\n\n\n\n dos \r\ntres", "uno\n\ndos\ntres"),
        ("man\u0303ana", "mañana"),
        ("n\u200b\u0303u", "ñu"),
        (f"I{INVISIBLE}GNORA", "IGNORA"),
        ("\x1b[31mrojo\x07\x9b", "[31mrojo"),
        ("3,5 € · «¿qué?» 😀", "3,5 € · «¿qué?» 😀"),
        ("", ""),
    ],
)
def test_it_comes_out_clean(text: str, clean: str) -> None:
    assert untrusted(text) == Untrusted(clean)


def test_it_is_not_text_until_it_is_asked_for() -> None:
    assert not isinstance(untrusted("x"), str)


@given(st.text())
def test_nothing_unseen_is_left_and_cleaning_again_changes_nothing(text: str) -> None:
    clean = untrusted(text).text
    assert untrusted(clean).text == clean
    assert all(char == "\n" or char.isprintable() for char in clean)
    assert not set(clean) & set(INVISIBLE)
    assert unicodedata.is_normalized("NFC", clean)
