"""Textos corridos y páginas: .txt, .md, .html y .pdf."""

import io
import logging
import re
from typing import IO

from enlace.config import schema
from enlace.corpus.read.raw import Found, RawText, UnreadableError, decode, read_whole

_MARKDOWN = (
    (re.compile(r"^---\n.*?\n---\n", re.DOTALL), ""),  # la cabecera
    (re.compile(r"^(```|~~~).*?^\1[^\n]*$", re.DOTALL | re.MULTILINE), ""),
    (re.compile(r"!\[[^\]]*\]\([^)]*\)|<!--.*?-->", re.DOTALL), ""),
    (re.compile(r"\[([^\]]+)\]\([^)]*\)"), r"\1"),
    (re.compile(r"^#{1,6} +|^> ?|(?<!\w)[*_]{1,3}(?=\S)|(?<=\S)[*_]{1,3}(?!\w)|`", re.MULTILINE), ""),
)


def read_text(stream: IO[bytes], name: str, limits: schema.Limits) -> Found:
    """Un texto entero."""
    yield RawText("", decode(read_whole(stream, limits)), title=_stem(name), work=name)


def read_markdown(stream: IO[bytes], name: str, limits: schema.Limits) -> Found:
    """Un texto en Markdown, sin sus marcas ni su código."""
    text = decode(read_whole(stream, limits))
    for pattern, replacement in _MARKDOWN:
        text = pattern.sub(replacement, text)
    yield RawText("", text, title=_stem(name), work=name)


def read_html(stream: IO[bytes], name: str, limits: schema.Limits) -> Found:
    """El texto principal de una página."""
    yield page_text(read_whole(stream, limits), "", name)


def page_text(content: bytes, place: str, work: str, url: str = "") -> RawText:
    """El texto principal de una página. UnreadableError si no tiene."""
    import trafilatura

    logging.getLogger("trafilatura").setLevel(logging.CRITICAL)
    logging.getLogger("htmldate").setLevel(logging.CRITICAL)
    try:
        found = trafilatura.bare_extraction(content, url=url or None, with_metadata=True, include_comments=False)
    except (ValueError, RecursionError, AttributeError, LookupError, TypeError) as error:
        raise UnreadableError(f"no se entiende la página: {type(error).__name__}") from error
    text = getattr(found, "text", None)
    if not text:
        raise UnreadableError("la página no tiene texto principal")
    return RawText(place, text, title=getattr(found, "title", None) or "", url=url, work=work)


def read_pdf(stream: IO[bytes], name: str, limits: schema.Limits) -> Found:
    """El texto de un PDF que lo tenga."""
    from pypdf import PdfReader
    from pypdf.errors import PyPdfError

    logging.getLogger("pypdf").setLevel(logging.CRITICAL)
    content = read_whole(stream, limits)
    try:
        reader = PdfReader(io.BytesIO(content))
        if reader.is_encrypted and not reader.decrypt(""):
            raise UnreadableError("el PDF tiene contraseña")
        text = "\n\n".join(page.extract_text() for page in reader.pages)
        title = str(reader.metadata.title or "") if reader.metadata else ""
    except (PyPdfError, ArithmeticError, LookupError, ValueError, TypeError, AttributeError, RecursionError) as error:
        raise UnreadableError(f"el PDF está dañado: {type(error).__name__}") from error
    if not text.strip():
        raise UnreadableError("el PDF no tiene texto: serán imágenes")
    yield RawText("", text, title=title or _stem(name), work=name)


def _stem(name: str) -> str:
    return name.rpartition("/")[2].partition(".")[0]
