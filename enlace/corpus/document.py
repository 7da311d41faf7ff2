"""El documento: un texto limpio que sabe de dónde viene y con qué licencia."""

import re
import unicodedata
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass

import zstandard

from enlace.durable import to_json

# Trozos en que se parte un libro: lo bastante largos para tener hilo y lo bastante cortos para apartar algunos.
PIECE_CHARACTERS = 20_000
_ZSTD_LEVEL = 3


@dataclass(frozen=True)
class Document:
    """Un documento. id es único en su colección y no cambia de una vez a otra; url, title y work son opcionales.

    work: la obra a la que pertenece; al apartar validación no se parte.
    """

    id: str
    text: str
    source: str
    license: str
    url: str = ""
    title: str = ""
    work: str = ""


def tidy(text: str) -> str:
    """NFC, saltos de línea de Unix, sin caracteres de control, espacios sueltos ni más de una línea en blanco."""
    text = unicodedata.normalize("NFC", text.replace("\r\n", "\n").replace("\r", "\n"))
    text = re.sub(r"[^\S\n]+", " ", re.sub(r"[\x00-\x08\x0b-\x1f\x7f\ufeff\u00ad]", "", text))
    return re.sub(r"\n{3,}", "\n\n", re.sub(r" ?\n ?", "\n", text)).strip()


def pieces(text: str, size: int = PIECE_CHARACTERS) -> Iterator[str]:
    """Parte un texto largo en trozos de unos `size` caracteres, entre párrafos o, si no los hay, entre líneas."""
    piece = ""
    for line in text.split("\n"):
        piece += line + "\n"
        ends_here = not line or len(piece) >= 2 * size
        if ends_here and len(piece) >= size and piece.strip():
            yield piece.strip()
            piece = ""
    if piece.strip():
        yield piece.strip()


def to_jsonl_zst(documents: Iterable[Document]) -> Iterator[bytes]:
    """Los bytes de un fichero .jsonl.zst, un documento por línea; los campos vacíos no se escriben."""
    compressor = zstandard.ZstdCompressor(level=_ZSTD_LEVEL, write_checksum=True).compressobj()
    for document in documents:
        record = {name: value for name, value in asdict(document).items() if value}
        yield compressor.compress(to_json(record) + b"\n")
    yield compressor.flush()
