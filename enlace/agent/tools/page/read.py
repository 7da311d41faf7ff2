"""De una dirección a su texto principal.

Lo que no se ve no se lee: programas, estilos, comentarios y lo que la página esconde con sus atributos. Lo que esconde
de otra manera (letra blanca, hojas de estilo aparte) no se puede saber aquí: por eso todo el texto sale como ajeno.
"""

import io
import logging
import re
from dataclasses import dataclass
from typing import Any, Literal

import trafilatura
from lxml import html
from pypdf import PdfReader
from pypdf.errors import PyPdfError

from enlace.agent.untrusted import Untrusted, untrusted
from enlace.agent.web import WebClient, WebResponse, parse_html
from enlace.config import schema
from enlace.errors import EnlaceError

Kind = Literal["html", "pdf", "text"]

_HIDDEN_STYLE = re.compile(r"display\s*:\s*none|visibility\s*:\s*hidden|font-size\s*:\s*0(?![.\d])", re.IGNORECASE)
_NEVER_READ = ("script", "style", "noscript", "template", "iframe", "object", "svg")
_LANGUAGE = re.compile(r"[A-Za-z]{2,3}(-[A-Za-z0-9]{2,8})*", re.ASCII)
_SNIFFED = 1024


@dataclass(frozen=True)
class PageText:
    """Una página leída. url: la final; date: AAAA-MM-DD, si la dice; language: el que declara; cut: no cabía entera."""

    url: str
    kind: Kind
    title: Untrusted
    text: Untrusted
    date: str | None
    language: str | None
    cut: bool


@dataclass(frozen=True)
class _Read:
    title: str
    text: str
    date: str | None = None
    language: str | None = None


def read_page(url: str, client: WebClient, config: schema.Page) -> PageText:
    """Trae una dirección y lee su texto.

    WebError si no se llega; EnlaceError si contesta con un error, si no es texto o si no hay nada que leer.
    """
    response = client.get(url, headers={"Accept": "text/html,application/pdf,text/plain;q=0.9"})
    if response.status >= 400:
        raise EnlaceError(
            f"la página contesta con el estado {response.status}", where=response.url, fix="comprueba la dirección"
        )
    kind = _kind_of(response)
    read = _READERS[kind](response, config)
    text = untrusted(read.text).text
    if not text:
        raise EnlaceError(
            "la página no tiene texto que leer",
            where=response.url,
            why="puede que lo escriba un programa al abrirla, o que sean solo imágenes",
            fix="ábrela en un navegador",
        )
    shown = _cut(text, config.max_characters)
    title = untrusted(read.title)
    return PageText(response.url, kind, title, Untrusted(shown), read.date, read.language, shown != text)


def _kind_of(response: WebResponse) -> Kind:
    """Por lo que es y no por lo que dice ser: hay servidores que se equivocan."""
    start = response.body[:_SNIFFED].lstrip()
    declared = response.headers.get("content-type", "").partition(";")[0].strip().lower()
    if start.startswith(b"%PDF-"):
        return "pdf"
    is_binary = b"\0" in start and not start.startswith((b"\xff\xfe", b"\xfe\xff"))
    if is_binary or declared.startswith(("image/", "audio/", "video/", "font/")) or declared == "application/pdf":
        raise EnlaceError("no es una página ni un PDF", where=response.url, why=f"es {declared or 'otra cosa'}"[:100])
    if declared in ("text/html", "application/xhtml+xml") or start[:1] == b"<":
        return "html"
    return "text"


def _read_html(response: WebResponse, _config: schema.Page) -> _Read:
    page = parse_html(response.text())
    if page is None:
        return _Read("", "")
    title, language = str(page.findtext(".//title") or ""), page.get("lang") or ""
    for element in [each for each in page.iter() if _is_hidden(each)]:
        if element.getparent() is not None:
            element.drop_tree()
    document = _extract(page, response.url)
    return _Read(
        title=document.title or title if document else title,
        text=document.text or "" if document else "",
        date=document.date if document else None,
        language=language if _LANGUAGE.fullmatch(language) else None,
    )


def _extract(page: html.HtmlElement, url: str) -> Any:
    # Cuenta lo que hace por el registro, y aquí quien lee la página no lo ha pedido.
    logging.getLogger("trafilatura").setLevel(logging.CRITICAL)
    logging.getLogger("htmldate").setLevel(logging.CRITICAL)
    try:
        return trafilatura.bare_extraction(page, url=url, with_metadata=True, include_comments=False)
    except (ValueError, RecursionError, AttributeError, KeyError, IndexError, TypeError) as error:
        # Hay páginas rotas con las que la biblioteca no puede.
        raise EnlaceError("no se entiende la página", where=url, why=type(error).__name__) from error


def _is_hidden(element: html.HtmlElement) -> bool:
    if not isinstance(element.tag, str) or element.tag in _NEVER_READ:
        return True
    hidden = element.get("hidden") is not None or element.get("aria-hidden") == "true"
    return hidden or bool(_HIDDEN_STYLE.search(element.get("style") or ""))


def _read_pdf(response: WebResponse, config: schema.Page) -> _Read:
    logging.getLogger("pypdf").setLevel(logging.CRITICAL)
    try:
        reader = PdfReader(io.BytesIO(response.body))
        if reader.is_encrypted and not reader.decrypt(""):
            raise EnlaceError("el PDF tiene contraseña", where=response.url, fix="ábrelo tú con ella")
        parts: list[str] = []
        size = 0
        for page in reader.pages[: config.max_pdf_pages]:
            parts.append(page.extract_text())
            size += len(parts[-1])
            if size > config.max_characters:
                break
        title = str(reader.metadata.title or "") if reader.metadata else ""
    except EnlaceError:
        raise
    except (PyPdfError, ArithmeticError, LookupError, ValueError, TypeError, AttributeError, RecursionError) as error:
        # pypdf no promete qué levanta con un PDF roto.
        why = f"{type(error).__name__}: {error}"[:200]
        raise EnlaceError("el PDF está dañado o no se entiende", where=response.url, why=why) from error
    return _Read(title, "\n\n".join(parts))


def _read_plain(response: WebResponse, _config: schema.Page) -> _Read:
    return _Read("", response.text())


def _cut(text: str, longest: int) -> str:
    """El principio que cabe, hasta un párrafo o una palabra enteros si no se pierde demasiado."""
    if len(text) <= longest:
        return text
    kept = text[:longest]
    for mark in ("\n\n", "\n", " "):
        end = kept.rfind(mark)
        if end >= longest // 2:
            return kept[:end]
    return kept


_READERS = {"html": _read_html, "pdf": _read_pdf, "text": _read_plain}
