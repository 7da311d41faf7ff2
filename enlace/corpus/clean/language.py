"""El idioma de un texto: español o no, y a veces no se sabe.

py3langid (Barbaresi, 2024, sobre langid.py, Lui y Baldwin, 2012) distingue el español del gallego, que es donde casi
todos fallan. Se le dan solo los idiomas con los que se confunde.
"""

from collections import Counter
from dataclasses import dataclass
from functools import cache
from typing import Any, Literal

from enlace.config import schema

Verdict = Literal["es", "otro", "no se sabe"]

RIVALS = ("es", "pt", "gl", "ca", "it", "en", "fr", "eu", "de", "ro", "la", "nl")
# Con tres trozos de un texto largo basta para el documento entero.
_WINDOW = 700
_PARAGRAPH = 400
# Las palabras más corrientes de los rivales que no lo son también en español.
_FOREIGN = frozenset(
    "the and of to is that for with this are you not il che di non della per sono les des est dans pour une não uma "
    "com dos das em ao pelo é unha polo coa dun amb els aquest són und der die das ist nicht eta".split()
)
_FOREIGN_SHARE = 0.02


@dataclass(frozen=True)
class Spanish:
    """La parte en español de un texto. share: qué parte de lo que se ha podido juzgar lo está."""

    text: str
    verdict: Verdict
    share: float


def judge(text: str, config: schema.Language) -> Verdict:
    """El idioma de un trozo; «no se sabe» si es corto o no hay ventaja bastante."""
    words = len(text.split())
    if words < config.min_words:
        return "no se sabe"
    (first, score), (_, second) = _identifier().rank(text)[:2]
    if first == "es":
        return "es" if (score - second) / words >= config.min_margin_per_word else "no se sabe"
    return "otro"


def keep_spanish(text: str, config: schema.Language) -> Spanish:
    """Deja los párrafos en español y los que no se sabe, y dice qué parte del texto lo estaba."""
    whole = judge(_windows(text), config)
    alone = Spanish(text, whole, 1.0 if whole == "es" else 0.0)
    paragraphs = text.split("\n\n")
    if len(paragraphs) == 1 or (whole == "es" and not _is_mixed(text)):
        return alone
    verdicts = [judge(paragraph[:_PARAGRAPH], config) for paragraph in paragraphs]
    sizes: Counter[Verdict] = Counter()
    for paragraph, verdict in zip(paragraphs, verdicts, strict=True):
        sizes[verdict] += len(paragraph)
    judged = sizes["es"] + sizes["otro"]
    if not judged:
        return alone
    share = sizes["es"] / judged
    kept = "\n\n".join(p for p, verdict in zip(paragraphs, verdicts, strict=True) if verdict != "otro")
    is_spanish = share >= config.min_spanish_share and (whole != "otro" or share > 0.5)
    return Spanish(kept, "es" if is_spanish else "otro", share)


def _is_mixed(text: str) -> bool:
    """Si hay bastantes palabras que en español no existen: mirar párrafo a párrafo cuesta diez veces más que esto."""
    words = text.lower().split()
    return sum(map(_FOREIGN.__contains__, words)) > _FOREIGN_SHARE * len(words)


def _windows(text: str) -> str:
    if len(text) <= 3 * _WINDOW:
        return text
    middle = (len(text) - _WINDOW) // 2
    return "\n".join((text[:_WINDOW], text[middle : middle + _WINDOW], text[-_WINDOW:]))


@cache
def _identifier() -> Any:
    # Al importarse carga su modelo: solo lo paga quien mira idiomas.
    import py3langid

    py3langid.set_languages(list(RIVALS))
    return py3langid
