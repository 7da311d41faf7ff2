"""El cuerpo de una respuesta: con tope de bytes, también al descomprimir, su texto y su HTML."""

import codecs
import gzip
import io
import re
import zlib
from collections.abc import Iterable, Mapping

from lxml import html
from lxml.etree import LxmlError

from enlace.agent.web.errors import NetworkError, TooBigError

_CHARSET = re.compile(r"charset\s*=\s*[\"']?\s*([\w.:-]+)", re.IGNORECASE | re.ASCII)
_META = re.compile(r"<(?:meta\b[^>]*charset|\?xml\b[^>]*encoding)\s*=\s*[\"']?\s*([\w.:-]+)", re.IGNORECASE | re.ASCII)
# Los de la web. Python tiene otros que avisan o que con una página grande no acaban (punycode).
_WEB_CODECS = re.compile(
    r"ascii|utf-(8|16)(-[bl]e)?|iso8859-\d+|cp\d+|koi8-[ru]|mac-\w+|tis-620|hz|(gb|big5|euc_|iso2022_|shift_ji)\w+"
)
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
        return _inflate(raw, host, limit) if encoding == "deflate" else _gunzip(raw, host, limit)
    except EOFError as error:
        raise NetworkError(f"la respuesta de {host} llega cortada", where=host) from error
    except (zlib.error, gzip.BadGzipFile) as error:
        raise NetworkError(f"la respuesta de {host} está estropeada", where=host) from error


def decode(body: bytes, headers: Mapping[str, str]) -> str:
    """El texto, con el juego de caracteres que diga la marca inicial, la cabecera o el propio HTML; no falla nunca."""
    for bom, name in _BOMS:
        if body.startswith(bom):
            return body.decode(name, "replace")
    declared = _declared(body, headers.get("content-type", ""))
    for name in (declared, "utf-8"):
        try:
            return body.decode(name)
        except UnicodeError:
            continue
    # Un byte suelto estropeado no quita las tildes de toda la página.
    text = body.decode("utf-8", "replace")
    broken = text.count("\N{REPLACEMENT CHARACTER}")
    beyond_ascii = len(text) - len(text.encode("ascii", "ignore"))
    if beyond_ascii > 2 * broken:
        return text
    return body.decode("cp1252" if declared == "utf-8" else declared, "replace")


def parse_html(text: str) -> html.HtmlElement | None:
    """El HTML de un texto, aunque esté roto, sin comentarios; None si no hay nada. No pide nada a la red."""
    parser = html.HTMLParser(encoding="utf-8", no_network=True, remove_comments=True, remove_pis=True)
    try:
        # Sin nulos, que lxml no admite; y en bytes, porque rechaza un texto que declara su codificación.
        return html.document_fromstring(text.replace("\0", "").encode("utf-8", "replace"), parser=parser)
    except (LxmlError, ValueError):
        return None


def _declared(body: bytes, content_type: str) -> str:
    """El juego de caracteres que dice la cabecera o, en HTML y XML, el principio del texto; utf-8 si ninguno vale."""
    if found := _CHARSET.search(content_type):
        return _codec(found[1])
    kind = content_type.lower()
    # En los demás, un «charset=» es parte de lo que se cuenta.
    if kind and "html" not in kind and "xml" not in kind:
        return "utf-8"
    found = _META.search(body[:_META_BYTES].decode("ascii", "ignore"))
    name = _codec(found[1]) if found else "utf-8"
    return "utf-8" if name.startswith("utf-16") else name  # en utf-16 no se habría podido leer


def _codec(label: str) -> str:
    try:
        name = codecs.lookup(label).name
    except LookupError:
        return "utf-8"
    if name in ("ascii", "iso8859-1"):  # como los navegadores: quien dice latin-1 manda cp1252
        return "cp1252"
    return name if _WEB_CODECS.fullmatch(name) else "utf-8"


def _gather(chunks: Iterable[bytes], host: str, limit: int) -> bytes:
    body = bytearray()
    for chunk in chunks:
        body += chunk
        if len(body) > limit:
            raise TooBigError(host, limit)
    return bytes(body)


# El tope va en la propia descompresión: una bomba no llega a existir en memoria.
def _gunzip(raw: bytes, host: str, limit: int) -> bytes:
    # Con gzip, y no con zlib, que en una respuesta de varios miembros solo lee el primero.
    with gzip.GzipFile(fileobj=io.BytesIO(raw)) as file:
        body = file.read(limit + 1)
    if len(body) > limit:
        raise TooBigError(host, limit)
    return body


def _inflate(raw: bytes, host: str, limit: int) -> bytes:
    try:
        machine = zlib.decompressobj(_EITHER_HEADER)
        body = machine.decompress(raw, limit + 1)
    except zlib.error:  # hay servidores que llaman deflate a lo que no lleva cabecera
        machine = zlib.decompressobj(_NO_HEADER)
        body = machine.decompress(raw, limit + 1)
    if len(body) > limit:
        raise TooBigError(host, limit)
    if not machine.eof:
        raise EOFError
    return body
