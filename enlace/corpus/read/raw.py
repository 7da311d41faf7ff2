"""Lo que sale de leer: un texto, o por qué no."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import IO

from enlace.config import schema


@dataclass(frozen=True)
class RawText:
    """Un texto sin limpiar. place: qué parte del fichero es; work: la obra, que no se parte al apartar validación."""

    place: str
    text: str
    license: str = ""
    url: str = ""
    title: str = ""
    work: str = ""


@dataclass(frozen=True)
class Skipped:
    """Algo que no se ha podido leer. place: vacío si es el fichero entero."""

    place: str
    reason: str


class UnreadableError(Exception):
    """El fichero no se puede leer; el mensaje dice por qué, para una persona."""


Found = Iterator[RawText | Skipped]
Reader = Callable[[IO[bytes], str, schema.Limits], Found]


def read_whole(stream: IO[bytes], limits: schema.Limits) -> bytes:
    """El contenido entero. UnreadableError si pasa del tope."""
    content = stream.read(limits.max_document_bytes + 1)
    if len(content) > limits.max_document_bytes:
        raise UnreadableError(f"pasa de {limits.max_document_bytes} bytes (limits.max_document_bytes)")
    return content


def decode(content: bytes) -> str:
    """Texto en UTF-8, o en UTF-16 o Windows-1252 si lo es. UnreadableError si no es texto."""
    is_wide = content.startswith((b"\xff\xfe", b"\xfe\xff"))
    for encoding in ["utf-16"] if is_wide else ["utf-8-sig", "cp1252"]:
        try:
            text = content.decode(encoding)
        except UnicodeDecodeError:
            continue
        if text.count("\0"):
            break
        return text
    raise UnreadableError("no es texto en UTF-8, UTF-16 ni Windows-1252")
