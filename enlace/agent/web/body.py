"""El cuerpo de una respuesta: con tope de bytes, también al descomprimir, su texto y su HTML."""

import codecs
import re
import zlib
from collections.abc import Iterable, Mapping

from lxml import html
from lxml.etree import LxmlError

from enlace.agent.web.errors import NetworkError, TooBigError

_CHARSET = re.compile(r"charset\s*=\s*[\"']?\s*([\w.:-]+)", re.IGNORECASE | re.ASCII)
_BOMS = ((codecs.BOM_UTF8, "utf-8-sig"), (codecs.BOM_UTF16_LE, "utf-16"), (codecs.BOM_UTF16_BE, "utf-16"))
_META_BYTES = 2048
_EITHER_HEADER, _NO_HEADER = 47, -15  # argumentos de zlib: gzip o zlib, y deflate a secas


def read_body(chunks: Iterable[bytes], encoding: str, host: str, limit: int) -> bytes:
    """Junta y descomprime. TooBigError en cuanto pasa de `limit`; NetworkError si está cortado o no se entiende."""
    raw = _gather(chunks, host, limit)
    if encoding in ("", "identity") or not raw:
        return raw
    if encoding not in ("gzip", "x-gzip", "deflate"):
        raise NetworkError(f"{host} contesta con una compresión que no se le ha pedido", where=host)
    try:
        return _inflate(raw, _EITHER_HEADER, host, limit)
    except zlib.error as error:
        if encoding != "deflate":
            raise NetworkError(f"la respuesta de {host} está estropeada", where=host, why=str(error)) from error
    try:  # hay servidores que llaman deflate a lo que no lleva cabecera
        return _inflate(raw, _NO_HEADER, host, limit)
    except zlib.error as error:
        raise NetworkError(f"la respuesta de {host} está estropeada", where=host, why=str(error)) from error


def decode(body: bytes, headers: Mapping[str, str]) -> str:
    """El texto, con el juego de caracteres que diga la marca inicial, la cabecera o el propio HTML; no falla nunca."""
    for bom, name in _BOMS:
        if body.startswith(bom):
            return body.decode(name, "replace")
    declared = _CHARSET.search(headers.get("content-type", "")) or _CHARSET.search(
        body[:_META_BYTES].decode("ascii", "ignore")
    )
    for name in filter(None, (declared and declared[1], "utf-8")):
        try:
            return body.decode("cp1252" if name.lower() in ("iso-8859-1", "latin-1", "latin1") else name)
        except (LookupError, ValueError):
            continue
    return body.decode("cp1252", "replace")


def parse_html(text: str) -> html.HtmlElement | None:
    """El HTML de un texto, aunque esté roto, sin comentarios; None si no hay nada. No pide nada a la red."""
    parser = html.HTMLParser(encoding="utf-8", no_network=True, remove_comments=True, remove_pis=True)
    try:
        # Sin nulos, que lxml no admite; y en bytes, porque rechaza un texto que declara su codificación.
        return html.document_fromstring(text.replace("\0", "").encode("utf-8", "replace"), parser=parser)
    except (LxmlError, ValueError):
        return None


def _gather(chunks: Iterable[bytes], host: str, limit: int) -> bytes:
    parts: list[bytes] = []
    size = 0
    for chunk in chunks:
        size += len(chunk)
        if size > limit:
            raise TooBigError(host, limit)
        parts.append(chunk)
    return b"".join(parts)


def _inflate(raw: bytes, kind: int, host: str, limit: int) -> bytes:
    # El tope va en la propia descompresión: una bomba no llega a existir en memoria.
    machine = zlib.decompressobj(kind)
    body = machine.decompress(raw, limit + 1)
    if len(body) > limit:
        raise TooBigError(host, limit)
    if not machine.eof:
        raise NetworkError(f"la respuesta de {host} llega cortada", where=host)
    return body
