"""El idioma: español frente a sus vecinos, también en textos cortos; lo que no se puede saber se dice."""

import pytest

from enlace.config.schema import Language
from enlace.corpus.clean.language import judge, keep_spanish

CONFIG = Language(min_words=8, min_margin_per_word=0.1, min_spanish_share=0.5)
SPANISH = "El perro de mi vecino ladra toda la noche y nadie en el barrio puede dormir tranquilo."
OTHERS = {
    "gl": "O can do meu veciño ladra toda a noite e ninguén no barrio pode durmir tranquilo por culpa del.",
    "pt": "O cachorro do meu vizinho late a noite toda e ninguém no bairro consegue dormir em paz.",
    "ca": "El gos del meu veí borda tota la nit i ningú al barri pot dormir tranquil per culpa seva.",
    "it": "Il cane del mio vicino abbaia tutta la notte e nessuno nel quartiere riesce a dormire tranquillo.",
    "en": "My neighbour's dog barks all night long and nobody in the whole street can sleep well at all.",
}


def test_spanish_is_spanish() -> None:
    assert judge(SPANISH, CONFIG) == "es"


@pytest.mark.parametrize("language", OTHERS)
def test_its_neighbours_are_not(language: str) -> None:
    assert judge(OTHERS[language], CONFIG) == "otro"


@pytest.mark.parametrize("text", ["", "Hola", "Película de vidro", "Libera bolhas que dispersam agentes"])
def test_too_little_text_is_not_judged(text: str) -> None:
    assert judge(text, CONFIG) == "no se sabe"


def test_the_paragraphs_in_another_language_go_and_the_rest_stays() -> None:
    mixed = f"{SPANISH}\n\n{OTHERS['en']}\n\n{SPANISH} Otra vez.\n\nBreve."
    kept = keep_spanish(mixed, CONFIG)
    assert kept.verdict == "es" and 0.5 < kept.share < 0.8
    assert kept.text == f"{SPANISH}\n\n{SPANISH} Otra vez.\n\nBreve."


def test_a_text_that_is_mostly_in_another_language_is_not_spanish() -> None:
    assert keep_spanish(f"{OTHERS['en']}\n\n{SPANISH}\n\n{OTHERS['en']} Again and again.", CONFIG).verdict == "otro"
