"""El texto que no ha escrito nadie de la casa."""

import re
import unicodedata
from dataclasses import dataclass

# Lo que no se ve y un modelo sí lee: etiquetas, selectores de variante, anchura cero y controles de dirección.
_INVISIBLE = re.compile(
    "[\U000e0000-\U000e007f\ufe00-\ufe0f\U000e0100-\U000e01ef\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff\u00ad]"
)
_SPACES = re.compile(r"[^\S\n]+")
_BLANK_LINES = re.compile(r"\n{3,}")


@dataclass(frozen=True)
class Untrusted:
    """Texto de internet o de un documento: puede mentir o dar órdenes.

    No es `str` a propósito: quien lo use tiene que pedir `.text` y se ve dónde. Mientras esté delante del modelo solo
    se usan herramientas que leen.
    """

    text: str


def untrusted(text: str) -> Untrusted:
    """Limpia un texto ajeno: NFC, sin caracteres invisibles ni de control, y con los espacios seguidos en uno."""
    visible = unicodedata.normalize("NFC", _INVISIBLE.sub("", text))
    lines = (_SPACES.sub(" ", _printable(line)).strip() for line in visible.split("\n"))
    return Untrusted(_BLANK_LINES.sub("\n\n", "\n".join(lines)).strip())


def _printable(line: str) -> str:
    # Casi todas lo son ya, y mirarlas letra a letra es lo más lento de leer una página.
    return line if line.isprintable() else "".join(char if char.isprintable() else " " for char in line)
