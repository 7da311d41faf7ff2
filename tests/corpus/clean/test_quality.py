"""La calidad: cada regla tiene nombre y tira lo suyo; un texto corriente pasa, y los versos, con sus umbrales."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from enlace.config import load_corpus
from enlace.config.schema import Quality
from enlace.corpus.clean.quality import broken_rule, measure

ROOT = Path(__file__).parents[3]
GOOD = (
    "La abuela guardaba las llaves en un cajón de la cocina, junto al azúcar y a unas fotografías antiguas. "
    "Cada domingo, después de comer, las sacaba una a una y nos contaba de qué puerta había sido cada llave: "
    "la del taller del abuelo, la de una casa en la montaña que nadie volvió a pisar, la de un baúl que se perdió "
    "en un traslado. Nosotros escuchábamos sin entender del todo por qué alguien querría guardar lo que ya no abre "
    "nada. Años más tarde, al vaciar aquella cocina, encontré el cajón exactamente igual, y también una llave nueva."
)
POEM = "\n".join(
    ["Verde que te quiero ver", "en la rama del olivo,", "con la luna por mujer", "y la brisa por canción."] * 4
)


@pytest.fixture
def limits(monkeypatch: pytest.MonkeyPatch) -> dict[str, Quality]:
    monkeypatch.chdir(ROOT)
    return dict(load_corpus("es").quality)


def test_ordinary_prose_passes(limits: dict[str, Quality]) -> None:
    assert broken_rule(measure(GOOD), limits["prosa"]) is None


def test_verse_passes_with_its_own_limits_and_not_with_those_of_prose(limits: dict[str, Quality]) -> None:
    assert broken_rule(measure(POEM), limits["verso"]) is None
    assert broken_rule(measure(POEM), limits["prosa"]) is not None


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("Muy poco texto.", "muy_corto"),
        (GOOD.replace("a", "\ufffd"), "caracteres_perdidos"),
        (GOOD + " {};" * 60, "codigo"),
        (GOOD + " 1234567890" * 30, "cifras"),
        (GOOD.upper(), "mayusculas"),
        (" ".join(["a"] * 80), "largo_de_palabra"),
        (GOOD + " ---" * 60, "pocas_letras"),
        ("gato perro mesa silla árbol " * 20, "sin_palabras_vacias"),
        (GOOD.translate(str.maketrans("áéíóúüñ", "aeiouun")), "sin_tildes"),
        ("\n".join(f"- la cosa número {n} de la lista que está aquí." for n in range(20)), "vinetas"),
        (
            "\n".join(f"Y entonces, después de comer, llegó por fin la parte {n} de él…" for n in range(20)),
            "puntos_suspensivos",
        ),
        ("\n".join(f"el menú de la página número {n} está en el sitio" for n in range(20)), "renglones_sin_punto"),
        ("\n".join(f"Ella volvió en marzo y {n} más." for n in range(40)), "muchos_renglones"),
        ("\n".join([GOOD.split(". ")[0] + "."] * 8), "renglones_repetidos"),
        (GOOD + " nunca jamás" * 40 + ".", "ngrama_repetido"),
        (f"{GOOD} {GOOD} Fin.", "ngramas_repetidos"),
    ],
)
def test_each_rule_drops_its_own(limits: dict[str, Quality], text: str, rule: str) -> None:
    assert broken_rule(measure(text), limits["prosa"]) == rule


@given(st.text(max_size=400))
def test_any_text_is_judged(text: str) -> None:
    limits = Quality(
        **{name: (0 if "min" in name else 1) for name in Quality.model_fields}  # type: ignore[arg-type]
        | {
            "max_words": 10,
            "max_top_ngram": {"2": 0.1},
            "max_repeated_ngrams": {"5": 0.1},
            "max_mean_word_length": 10.0,
            "min_mean_word_length": 0.0,
        }
    )
    assert broken_rule(measure(text), limits) is None or isinstance(broken_rule(measure(text), limits), str)
