"""Libros del Proyecto Gutenberg en texto plano, sin su cabecera ni su licencia."""

import re
from dataclasses import dataclass
from pathlib import Path

from enlace.corpus.document import Document, pieces, tidy
from enlace.errors import CorruptDataError, EnlaceError, NotFoundError, warn

SOURCE = "Project Gutenberg"
LICENCE = "dominio público en Estados Unidos"
_START = re.compile(r"^\*{3} ?START OF TH(?:E|IS) PROJECT GUTENBERG.*$", re.MULTILINE)
_END = re.compile(r"^(?:\*{3} ?END OF TH(?:E|IS) PROJECT GUTENBERG|End of (?:the )?Project Gutenberg)", re.MULTILINE)
_FIELD = re.compile(r"^(Title|Author|Language): *(.+)$", re.MULTILINE)
_CREDITS = re.compile(r"^(?:Produced by|E-text prepared by|Transcribed|\[Illustration|\[Transcriber)", re.IGNORECASE)


@dataclass(frozen=True)
class Book:
    """Un libro limpio: párrafos en una sola línea, separados por una línea en blanco."""

    title: str
    author: str
    text: str


def read_books(folder: Path) -> list[Document]:
    """Los libros en español de los ficheros ID.txt de la carpeta, en trozos. Los demás se saltan con un aviso.

    NotFoundError si no queda ninguno.
    """
    documents: list[Document] = []
    for file in sorted(folder.glob("*.txt")):
        try:
            documents += _documents(file.stem, parse_book(file.read_bytes(), file.name))
        except EnlaceError as error:
            warn(f"se salta {file.name}: {error.why}")
    if not documents:
        raise NotFoundError("no hay ningún libro en español", where=str(folder))
    return documents


def parse_book(content: bytes, where: str) -> Book:
    """Separa el libro de lo que Gutenberg le añade. CorruptDataError si no está en español o no se reconoce."""
    text = content.decode("utf-8-sig", errors="replace").replace("\r\n", "\n")
    start = _START.search(text)
    end = _END.search(text, start.end()) if start else None
    if not start or not end:
        raise _rejected(where, "no tiene las marcas de principio y fin de Project Gutenberg")
    fields = dict(_FIELD.findall(text[: start.start()]))
    if fields.get("Language", "").strip() != "Spanish":
        raise _rejected(where, "su cabecera no dice «Language: Spanish»")
    paragraphs = re.split(r"\n\s*\n", text[start.end() : end.start()])
    body = "\n\n".join(_unwrapped(paragraph) for paragraph in paragraphs if not _CREDITS.match(paragraph.strip()))
    return Book(fields.get("Title", where).strip(), fields.get("Author", "").strip(), tidy(body))


def _unwrapped(paragraph: str) -> str:
    """El párrafo en una línea, con rayas de verdad y sin las marcas de cursiva del texto plano."""
    line = " ".join(paragraph.split())
    return re.sub(r"_([^_]+)_", r"\1", line).replace("--", "—")


def _documents(number: str, book: Book) -> list[Document]:
    return [
        Document(
            id=f"gutenberg-{number}-{part:03d}",
            text=text,
            source=f"{SOURCE}: {book.title} ({book.author})" if book.author else f"{SOURCE}: {book.title}",
            license=LICENCE,
            url=f"https://www.gutenberg.org/ebooks/{number}",
            title=book.title,
        )
        for part, text in enumerate(pieces(book.text))
    ]


def _rejected(where: str, why: str) -> CorruptDataError:
    return CorruptDataError("no es un libro de Project Gutenberg en español", where=where, why=why)
