"""Páginas de ayuda en HTML: se queda el texto del artículo, sin menús ni lo que se repite de una página a otra."""

from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path

from enlace.corpus.document import Document, tidy
from enlace.errors import NotFoundError

_ARTICLE_ID = "DisplayArea"
_NOT_TEXT = {"script", "style", "nav", "button", "noscript", "svg"}
_BLOCKS = {"p", "div", "li", "tr", "table", "ul", "ol", "dl", "dt", "dd", "pre", "br", *(f"h{n}" for n in range(1, 7))}


class _Article(HTMLParser):
    """Junta el texto del <div id="DisplayArea"> y el título de la página."""

    def __init__(self) -> None:
        super().__init__()
        self.title = ""
        self.text: list[str] = []
        self._inside: list[str] = []  # las etiquetas abiertas que deciden si se guarda lo que viene
        self._in_title = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        attributes = dict(attrs)
        self._in_title = tag == "title"
        if tag in _BLOCKS:
            self.text.append("\n")
        if tag == "div" and (self._inside or attributes.get("id") == _ARTICLE_ID):
            self._inside.append("related" if attributes.get("class") == "relatedtopics" else "div")
        elif tag in _NOT_TEXT and self._inside:
            self._inside.append(tag)

    def handle_endtag(self, tag: str) -> None:
        self._in_title = False
        if tag in _BLOCKS:
            self.text.append("\n")
        if self._inside and tag == ("div" if self._inside[-1] == "related" else self._inside[-1]):
            self._inside.pop()

    def handle_data(self, data: str) -> None:
        if self._in_title:
            self.title += data
        elif self._inside and all(tag == "div" for tag in self._inside):
            self.text.append(data.replace("\n", " "))


def read_pages(folder: Path, source: str, licence: str) -> list[Document]:
    """Un documento por página .html de la carpeta, en orden de ruta; las que se quedan sin texto nuevo no salen.

    NotFoundError si no hay ninguna página con texto.
    """
    seen: set[str] = set()
    documents = [
        Document(id=file.relative_to(folder).as_posix(), text=text, source=source, license=licence, title=title)
        for file in sorted(folder.rglob("*.html"))
        for title, text in _new_text(file.read_text(encoding="utf-8", errors="replace"), seen)
    ]
    if not documents:
        raise NotFoundError("no hay páginas de ayuda", where=str(folder))
    return documents


def _new_text(page: str, seen: set[str]) -> Iterator[tuple[str, str]]:
    """Título y texto de la página sin los párrafos ya vistos, que apunta en `seen`."""
    article = _Article()
    article.feed(page)
    article.close()
    title = " ".join(article.title.split())
    lines = [line for line in tidy("".join(article.text)).split("\n") if line and line != title and line not in seen]
    seen.update(lines)
    if lines:
        yield title, tidy("\n".join((title, "", *lines)))
