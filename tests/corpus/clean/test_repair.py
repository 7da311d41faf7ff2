"""Reparar: lo estropeado se arregla y lo que está bien no se toca."""

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from enlace.corpus.clean.repair import repair

CLEAN = [
    "«¿Qué?», dijo ella — y no: «¡jamás!». 25 €, 3.º, 1.ª, 20 °C…",
    "Un emoji compuesto: 👩‍👩‍👧 y otro: ❤️ y una bandera 🇦🇷.",
    "São Paulo, Ângela y el señor Müller; AÑO, ESPAÑA, NIÑO.",
    "—Sí.\n—No.\n\nY se fue.",
    "La guerra franco-\nprusiana acabó en 1871.",
    "If (a < b) &amp no es una entidad; AT&T tampoco.",
]
WORDS = st.lists(
    st.sampled_from("casa niño «señora» ¿cuándo? árbol, pingüino. — 3,5 € ¡Ay! Ñandú 😀 co-\nrrer".split(" ")),
    max_size=40,
)


@pytest.mark.parametrize("text", CLEAN)
def test_what_is_well_stays_as_it_is(text: str) -> None:
    assert repair(text) == text


@pytest.mark.parametrize(
    ("text", "clean"),
    [
        ("GestiÃ³n y EspaÃ±a", "Gestión y España"),
        ("Â¿CuÃ¡ndo? Â«asÃ­Â»", "¿Cuándo? «así»"),
        ("EspaÃÂ±a", "España"),
        ("man\u0303ana", "mañana"),
        ("uno\r\ndos\rtres", "uno\ndos\ntres"),
        ("a\u00adbc\u200bd\ufeff\x07", "abcd"),
        ("eﬁcaz y ﬂor", "eficaz y flor"),
        ("una   línea \n\n\n\n otra\t\tmás", "una línea\n\notra más"),
        ("Tom &amp; Jerry &eacute;pica", "Tom & Jerry épica"),
    ],
)
def test_what_is_broken_is_mended(text: str, clean: str) -> None:
    assert repair(text) == clean


def test_words_cut_at_the_end_of_the_line_are_joined_where_there_are_several() -> None:
    printed = "La conquis-\nta del espa-\ncio empezó en los años cin-\ncuenta con un\nsatélite.\n\nDespués vino otro."
    assert (
        repair(printed)
        == "La conquista del espacio empezó en los años cincuenta con un satélite.\n\nDespués vino otro."
    )


@given(WORDS.map(" ".join) | st.text(max_size=200))
def test_mending_twice_is_mending_once(text: str) -> None:
    once = repair(text)
    assert repair(once) == once
    assert unicodedata.is_normalized("NFC", once)
