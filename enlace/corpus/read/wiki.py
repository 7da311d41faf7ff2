"""Un volcado de Wikipedia (…-pages-articles.xml): los artículos, sin plantillas, tablas ni referencias."""

import re
from typing import IO, Any

from lxml import etree

from enlace.config import schema
from enlace.corpus.read.raw import Found, RawText, Skipped, UnreadableError

# Plantillas que llevan texto de verdad: se queda lo que dicen.
_SPOKEN = {"unidad": " ", "nowrap": " ", "lang": None, "versalita": " ", "siglo": None, "num": " ", "formatnum": " "}
_UNSEEN_TAGS = {
    "ref",
    "gallery",
    "timeline",
    "math",
    "table",
    "references",
    "score",
    "imagemap",
    "chem",
    "syntaxhighlight",
}
_LOST_SPACE = re.compile(r" +([,.;:)])")
_EMPTY_PARENTHESES = re.compile(r" ?\(\s*(?:[,;:·]\s*)*\)")
_LEADING_COMMA = re.compile(r"\(\s*[,;:]\s*")
_HEADING = re.compile(r"^=+ *(.*?) *=+ *$", re.MULTILINE)
_LIST_MARK = re.compile(r"^[*#:;]+ *", re.MULTILINE)
_LAST_SECTIONS = re.compile(
    r"^=+ *(referencias|véase también|enlaces externos|bibliografía|notas|fuentes|lecturas recomendadas) *=+ *$.*",
    re.MULTILINE | re.DOTALL | re.IGNORECASE,
)
_REDIRECT = re.compile(r"\s*#\s*redirec", re.IGNORECASE)
_ROMAN = re.compile(r"[IVXLCDM]+")


def read_wiki(stream: IO[bytes], name: str, limits: schema.Limits) -> Found:
    """Un texto por artículo. Los espacios de nombres, en el idioma del volcado, salen de su cabecera."""
    namespaces: set[str] = set()
    pages = 0
    try:
        for _, element in etree.iterparse(stream, events=("end",), no_network=True, resolve_entities=False):
            tag = etree.QName(element).localname
            if tag == "namespace" and element.text and element.get("key") != "0":
                namespaces.add(element.text.lower())
            elif tag == "page":
                pages += 1
                yield from _article(element, namespaces, name, limits)
                element.clear()
                while element.getprevious() is not None:  # lo ya leído no se guarda
                    del element.getparent()[0]
    except (etree.XMLSyntaxError, OSError, EOFError, ValueError) as error:
        raise UnreadableError("el volcado está cortado o no es XML") from error
    if not pages:
        raise UnreadableError("no es un volcado de Wikipedia")


def _article(page: Any, namespaces: set[str], name: str, limits: schema.Limits) -> Found:
    if page.findtext("{*}ns") != "0" or page.find("{*}redirect") is not None:
        return
    title = page.findtext("{*}title") or ""
    source = page.findtext("{*}revision/{*}text") or ""
    if _REDIRECT.match(source):
        return
    if len(source) > limits.max_document_bytes:
        yield Skipped(title, f"pasa de {limits.max_document_bytes} bytes (limits.max_document_bytes)")
        return
    try:
        text = plain_text(source, namespaces)
    except RecursionError:
        yield Skipped(title, "sus plantillas anidan sin fin")
        return
    if text:
        yield RawText(title, text, title=title, work=f"{name}#{title}")


def plain_text(source: str, namespaces: set[str]) -> str:
    """El texto de un artículo escrito en el lenguaje de MediaWiki."""
    import mwparserfromhell as wiki

    code = wiki.parse(_LAST_SECTIONS.sub("", source), skip_style_tags=True)
    for node in code.filter(recursive=True):
        spoken = _spoken(node, namespaces, wiki.nodes)
        if spoken is not None:
            try:
                code.replace(node, spoken, recursive=True)
            except ValueError:  # ya se fue con quien lo llevaba dentro
                continue
    text = str(code.strip_code(normalize=True, collapse=True, keep_template_params=False))
    text = _LIST_MARK.sub("", _HEADING.sub(r"\1", text.replace("'''", "").replace("''", "")))
    text = _EMPTY_PARENTHESES.sub("", _LEADING_COMMA.sub("(", _LOST_SPACE.sub(r"\1", text)))
    lines = (line.strip() for line in text.split("\n"))
    return re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).strip()


def _spoken(node: Any, namespaces: set[str], nodes: Any) -> str | None:
    """Lo que se lee en lugar de un nodo, o None si se queda como está."""
    if isinstance(node, nodes.Template):
        return _template(node)
    if isinstance(node, nodes.Tag):
        return "" if str(node.tag).strip().lower() in _UNSEEN_TAGS else None
    if isinstance(node, nodes.Wikilink):
        prefix = str(node.title).partition(":")[0].strip().lower()
        return "" if prefix in namespaces or prefix in ("file", "image", "category") else None
    return None


def _template(node: Any) -> str:
    name = str(node.name).strip().lower()
    values = [str(parameter.value).strip() for parameter in node.params if not parameter.showkey]
    if name not in _SPOKEN or not values:
        return ""
    if name == "lang":
        return values[-1]
    if name == "siglo":
        return f"siglo {values[0]}" if _ROMAN.fullmatch(values[0]) else values[0]
    return (_SPOKEN[name] or " ").join(values)
