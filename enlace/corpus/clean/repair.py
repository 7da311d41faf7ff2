"""Arreglar un texto estropeado sin tocar el que está bien: aplicarlo dos veces da lo mismo que una."""

import re
import unicodedata
from functools import cache

import ftfy

# De control, menos el salto de línea y el tabulador; anchura cero, guion opcional y controles de dirección.
_INVISIBLE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u00ad\u200b\u200c\u200e\u200f\u202a-\u202e\u2060-\u2064\ufeff\ufff9-\ufffb]"
)
# Unen los emoji compuestos; sueltos no pintan nada.
_JOINERS = re.compile(
    "(?<![\u2190-\u2bff\u3030\u303d\U0001f000-\U0001faff\ufe0f\u200d\u20e3*#0-9])[\u200d\ufe0e\ufe0f]+"
)
_LIGATURES = {"ﬀ": "ff", "ﬁ": "fi", "ﬂ": "fl", "ﬃ": "ffi", "ﬄ": "ffl", "ﬅ": "st", "ﬆ": "st"}
_LIGATURE = re.compile("[ﬀ-ﬆ]")
# Solo donde hace falta: sustituir cada espacio por otro igual es lo que más tardaba.
_SPACES = re.compile(r"[^\S\n]{2,}|[^\S\n ]")
_LINE_ENDS = re.compile(r" \n ?|\n ")
_BLANK_LINES = re.compile(r"\n{3,}")
# Lo que delata un texto leído con otro juego de caracteres: solo entonces se llama a ftfy, que es cien veces más lenta.
_SUSPICIOUS = re.compile("[ÃÂâÐÑãÅÄÎÏËå×ØÙ][\x80-\u024f€‚-„†-•…‰‹›™Šœž\u02c6\u02dc–—‘’“”]|[├╤┬│▒░]|&[#\\w]{2,8};")
_BROKEN_WORD = re.compile(r"(?<=[a-záéíóúüñ])-\n(?=[a-záéíóúüñ])")
_WRAPPED_LINE = re.compile(r"(?<![.:;!?…»”\n])\n(?=[a-záéíóúüñ(«¿¡])")
_MIN_BROKEN_WORDS = 3


def repair(text: str) -> str:
    """NFC, saltos de Unix, sin caracteres invisibles, con las letras que eran y las palabras enteras.

    Los guiones de fin de renglón solo se quitan donde hay varios: es un texto cortado para imprimir, y entonces también
    se unen sus renglones.
    """
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    if _SUSPICIOUS.search(text):
        text = "\n".join(_rescued(line) if _SUSPICIOUS.search(line) else line for line in text.split("\n"))
    text = _LIGATURE.sub(lambda match: _LIGATURES[match[0]], _INVISIBLE.sub("", text))
    text = _SPACES.sub(" ", _JOINERS.sub("", unicodedata.normalize("NFC", text)))
    text = _BLANK_LINES.sub("\n\n", _LINE_ENDS.sub("\n", text)).strip()
    if len(_BROKEN_WORD.findall(text)) >= _MIN_BROKEN_WORDS:
        text = _WRAPPED_LINE.sub(" ", _BROKEN_WORD.sub("", text))
    return unicodedata.normalize("NFC", text)


def _rescued(line: str) -> str:
    return ftfy.fix_text(line, _rescue_config())


@cache
def _rescue_config() -> ftfy.TextFixerConfig:
    return ftfy.TextFixerConfig(
        uncurl_quotes=False,
        fix_latin_ligatures=False,
        fix_character_width=False,
        fix_line_breaks=False,
        normalization="NFC",
    )
