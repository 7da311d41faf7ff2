"""Lo que se busca, limpio antes de salir de casa."""

import re

from enlace.agent.untrusted import untrusted
from enlace.errors import UsageError


def clean_query(text: str) -> str:
    """Sin caracteres invisibles ni de control y con los espacios en uno. UsageError si no queda nada que buscar."""
    words = untrusted(text.encode("utf-8", "ignore").decode()).text.split()
    if not words:
        raise UsageError("no hay nada que buscar", where="enlace search", fix='escribe algo: enlace search "clima"')
    return " ".join(words)


def quote_words(text: str, special: re.Pattern[str]) -> str:
    """Entre comillas las palabras que un servicio tomaría por órdenes."""
    return " ".join(f'"{word}"' if special.fullmatch(word) else word for word in text.split(" "))


def shorten(text: str, *, characters: int, words: int | None = None) -> str:
    """El principio que cabe en lo que admite un servicio, sin partir palabras si se puede."""
    kept = " ".join(text.split(" ")[:words])
    if len(kept) <= characters:
        return kept
    whole = kept[: characters + 1].rpartition(" ")[0]
    return whole or kept[:characters]
