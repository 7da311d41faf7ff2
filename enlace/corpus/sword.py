"""Módulos SWORD de tipo zText: textos por versículos en bloques comprimidos con zlib.

Por cada parte (ot, nt) hay tres ficheros, con enteros little-endian:

    ot.bzs   por bloque: dónde empieza en .bzz, cuánto ocupa comprimido y cuánto descomprimido (uint32, uint32, uint32)
    ot.bzv   por versículo: bloque, dónde empieza dentro de él y longitud en bytes (uint32, uint32, uint16)
    ot.bzz   los bloques

La primera letra de la extensión es la del BlockType: b por libros, c por capítulos, v por versículos.
"""

import html
import re
import struct
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from enlace.corpus.document import Document, tidy
from enlace.errors import CorruptDataError, NotFoundError

_SETTING = re.compile(r"^(\w+)=(.*)$", re.MULTILINE)
_BOOK_TITLE = re.compile(r'<title\b[^>]*\btype="main"[^>]*>(.*?)</title>', re.DOTALL)
_CHAPTER_START = re.compile(r'<chapter\b[^>]*\bosisID="([^".]+)\.(\d+)"')
_NOT_VERSE = re.compile(r"<(note|title)\b[^>]*(?<!/)>.*?</\1>", re.DOTALL)
_TAG = re.compile(r"<[^>]*>")


@dataclass
class _Chapter:
    id: str
    title: str
    verses: list[str] = field(default_factory=list)


def read_module(library: Path) -> list[Document]:
    """Un documento por capítulo del módulo instalado en `library` (la carpeta que contiene mods.d).

    NotFoundError si no hay módulo; CorruptDataError si no es zText con zlib o sus ficheros no cuadran.
    """
    settings_file = next(iter(sorted(library.glob("mods.d/*.conf"))), None)
    if settings_file is None:
        raise NotFoundError("no hay ningún módulo SWORD", where=str(library / "mods.d"))
    settings = dict(_SETTING.findall(settings_file.read_text(encoding="utf-8", errors="replace")))
    if (settings.get("ModDrv"), settings.get("CompressType")) != ("zText", "ZIP"):
        raise _corrupt(settings_file, "solo se leen módulos zText comprimidos con ZIP")
    folder = library / settings.get("DataPath", "")
    letter = settings.get("BlockType", "BOOK")[:1].lower()
    chapters = [chapter for part in ("ot", "nt") for chapter in _chapters(_entries(folder, part, letter))]
    if not chapters:
        raise _corrupt(folder, "no hay ningún capítulo marcado")
    source, licence = settings.get("Description", settings_file.stem), settings.get("DistributionLicense", "")
    return [_document(chapter, source, licence) for chapter in chapters if chapter.verses]


def _document(chapter: _Chapter, source: str, licence: str) -> Document:
    # Un versículo por línea, como en la edición impresa, donde cada uno abre párrafo.
    text = tidy("\n\n".join((chapter.title, "\n".join(chapter.verses))))
    return Document(id=chapter.id, text=text, source=source, license=licence, title=chapter.title)


def _chapters(entries: Iterator[str]) -> list[_Chapter]:
    book = ""
    chapters: list[_Chapter] = []
    for entry in entries:
        if title := _BOOK_TITLE.search(entry):
            book = _plain(title[1])
        if start := _CHAPTER_START.search(entry):
            chapters.append(_Chapter(id=f"{start[1]}.{start[2]}", title=f"{book or start[1]} {start[2]}"))
        verse = _plain(_NOT_VERSE.sub("", entry))
        if verse and chapters:
            chapters[-1].verses.append(verse)
    return chapters


def _plain(markup: str) -> str:
    """El texto sin las etiquetas de OSIS o ThML ni entidades, en una línea."""
    return " ".join(html.unescape(_TAG.sub("", markup)).split())


def _entries(folder: Path, part: str, letter: str) -> Iterator[str]:
    """El texto marcado de cada versículo, en orden. Dos versículos enlazados comparten texto: sale una vez."""
    index = folder / f"{part}.{letter}zv"
    if not index.exists():
        return
    try:
        blocks = list(_blocks(folder, part, letter))
        previous = None
        for place in struct.iter_unpack("<IIH", index.read_bytes()):
            block, start, length = place
            if length and place != previous:
                yield _slice(blocks[block], start, length)
            previous = place
    except (OSError, IndexError, ValueError, struct.error, zlib.error) as error:
        raise _corrupt(index, str(error)) from error


def _blocks(folder: Path, part: str, letter: str) -> Iterator[bytes]:
    compressed = (folder / f"{part}.{letter}zz").read_bytes()
    for start, size, full_size in struct.iter_unpack("<III", (folder / f"{part}.{letter}zs").read_bytes()):
        block = zlib.decompress(compressed[start : start + size])
        if len(block) != full_size:
            raise ValueError(f"un bloque mide {len(block)} bytes y su índice dice {full_size}")
        yield block


def _slice(block: bytes, start: int, length: int) -> str:
    if start + length > len(block):
        raise ValueError("un versículo se sale de su bloque")
    return block[start : start + length].decode("utf-8")


def _corrupt(path: Path, why: str) -> CorruptDataError:
    return CorruptDataError("el módulo SWORD no se puede leer", where=str(path), why=why, fix="vuelve a descargarlo")
