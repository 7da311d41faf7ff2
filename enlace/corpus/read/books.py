"""Libros y documentos que son un ZIP con XML dentro: .epub y .docx."""

import posixpath
import zipfile
from collections.abc import Iterator
from typing import IO
from urllib.parse import unquote

from lxml import etree

from enlace.config import schema
from enlace.corpus.read.raw import Found, RawText, Skipped, UnreadableError

_CONTAINER = "{urn:oasis:names:tc:opendocument:xmlns:container}rootfile"
_OPF = "{http://www.idpf.org/2007/opf}"
_DC = "{http://purl.org/dc/elements/1.1/}"
_WORD = "{http://schemas.openxmlformats.org/wordprocessingml/2006/main}"
_BLOCKS = {"p", "h1", "h2", "h3", "h4", "h5", "h6", "li", "blockquote", "div", "br", "tr", "dt", "dd", "pre"}
_UNSEEN = {"script", "style", "head", "nav", "svg"}


def read_epub(stream: IO[bytes], name: str, limits: schema.Limits) -> Found:
    """Un texto por capítulo, en el orden del libro."""
    with _opened(stream) as book:
        container = _xml(_member(book, "META-INF/container.xml", limits))
        root = container.find(f".//{_CONTAINER}")
        path = root.get("full-path") if root is not None else None
        if not path:
            raise UnreadableError("no dice dónde está su índice")
        package = _xml(_member(book, path, limits))
        title = package.findtext(f".//{_DC}title") or ""
        rights = package.findtext(f".//{_DC}rights") or ""
        chapters = {item.get("id"): item.get("href") or "" for item in package.iter(f"{_OPF}item")}
        for number, entry in enumerate(package.iter(f"{_OPF}itemref"), 1):
            href = posixpath.join(posixpath.dirname(path), unquote(chapters.get(entry.get("idref"), "")))
            try:
                text = _page(_member(book, href, limits))
            except UnreadableError as error:
                yield Skipped(f"capítulo {number}", str(error))
                continue
            if text.strip():
                yield RawText(str(number), text, license=rights[:200], title=title, work=name)


def read_docx(stream: IO[bytes], name: str, limits: schema.Limits) -> Found:
    """Los párrafos de un documento de Word."""
    with _opened(stream) as document:
        body = _xml(_member(document, "word/document.xml", limits))
    paragraphs = ("".join(piece.text or "" for piece in p.iter(f"{_WORD}t")) for p in body.iter(f"{_WORD}p"))
    yield RawText("", "\n\n".join(filter(str.strip, paragraphs)), title=name.rpartition("/")[2], work=name)


def _opened(stream: IO[bytes]) -> zipfile.ZipFile:
    try:
        return zipfile.ZipFile(stream)
    except (zipfile.BadZipFile, OSError, ValueError) as error:
        raise UnreadableError("está cortado o no es un ZIP") from error


def _member(book: zipfile.ZipFile, name: str, limits: schema.Limits) -> bytes:
    try:
        with book.open(name=name) as member:
            # Lo que dice medir puede ser mentira: el tope va en la lectura.
            content = member.read(limits.max_document_bytes + 1)
    except (KeyError, zipfile.BadZipFile, OSError, ValueError, RuntimeError, NotImplementedError, EOFError) as error:
        raise UnreadableError(f"no se puede leer «{name}»") from error
    if len(content) > limits.max_document_bytes:
        raise UnreadableError(f"«{name}» pasa de {limits.max_document_bytes} bytes (limits.max_document_bytes)")
    return content


def _parser() -> etree.XMLParser:
    return etree.XMLParser(resolve_entities=False, no_network=True, recover=True, huge_tree=False)


def _xml(content: bytes) -> etree._Element:
    try:
        found: etree._Element | None = etree.fromstring(content, _parser())
    except etree.XMLSyntaxError as error:
        raise UnreadableError("su XML está roto") from error
    if found is None:
        raise UnreadableError("su XML está vacío")
    return found


def _page(content: bytes) -> str:
    return "".join(_pieces(_xml(content)))


def _pieces(root: etree._Element) -> Iterator[str]:
    """El texto en orden; cada bloque, en su párrafo."""
    unseen = 0  # dentro de cuántas cosas que no se leen está
    for event, element in etree.iterwalk(root, events=("start", "end")):
        tag = etree.QName(element).localname if isinstance(element.tag, str) else ""
        ends = "" if tag not in _BLOCKS else "\n" if tag == "br" else "\n\n"
        if event == "start":
            unseen += tag in _UNSEEN
            yield "" if unseen or not tag else ends + _spaced(element.text)
        else:
            unseen -= tag in _UNSEEN
            yield "" if unseen else ends + _spaced(element.tail)


def _spaced(text: str | None) -> str:
    return " ".join(text.split("\n")) if text else ""
