"""Colecciones de documentos: .jsonl, .parquet y .warc."""

import json
from collections.abc import Iterator, Mapping
from typing import IO, Any

from enlace.config import schema
from enlace.corpus.read.plain import page_text
from enlace.corpus.read.raw import Found, RawText, Skipped, UnreadableError

_BLOCK = 1 << 20
_BATCH_ROWS = 256
_COLUMNS = ("text", "id", "license", "url", "title", "work", "meta")


def read_jsonl(stream: IO[bytes], name: str, limits: schema.Limits) -> Found:
    """Un documento por renglón, con su campo «text»; el renglón que no vale se salta y se dice."""
    for number, line in enumerate(_capped_lines(stream, limits.max_document_bytes), 1):
        place = f"renglón {number}"
        if line is None:
            yield Skipped(place, f"pasa de {limits.max_document_bytes} bytes (limits.max_document_bytes)")
        elif line.strip():
            try:
                record = json.loads(line)
            except (ValueError, RecursionError):
                yield Skipped(place, "no es JSON en UTF-8")
                continue
            yield from_record(record, str(number), place, name)


def read_parquet(stream: IO[bytes], name: str, limits: schema.Limits) -> Found:
    """Las filas de un Parquet con una columna «text»."""
    import pyarrow
    from pyarrow import parquet

    try:
        table = parquet.ParquetFile(stream)
        columns = [column for column in _COLUMNS if column in table.schema_arrow.names]
        if "text" not in columns:
            raise UnreadableError("no tiene una columna «text»")
        number = 0
        for batch in table.iter_batches(batch_size=_BATCH_ROWS, columns=columns):
            for record in batch.to_pylist():
                number += 1
                yield from_record(record, str(number), f"fila {number}", name)
    except (pyarrow.ArrowException, OSError, ValueError, KeyError) as error:
        raise UnreadableError("el Parquet está dañado o no lo es") from error


def read_warc(stream: IO[bytes], name: str, limits: schema.Limits) -> Found:
    """Las páginas de un archivo de la web."""
    from fastwarc.warc import ArchiveIterator, WarcRecordType

    number = pages = 0
    try:
        for record in ArchiveIterator(stream, record_types=WarcRecordType.response, parse_http=True):
            number += 1
            place = f"registro {number}"
            kind = str(record.http_content_type or "") if record.is_http else ""
            if kind not in ("text/html", "application/xhtml+xml"):
                continue
            pages += 1
            content = record.reader.read(limits.max_document_bytes + 1)
            if len(content) > limits.max_document_bytes:
                yield Skipped(place, f"pasa de {limits.max_document_bytes} bytes (limits.max_document_bytes)")
                continue
            url = str(record.headers.get("WARC-Target-URI") or "")
            try:
                yield page_text(content, str(number), url or f"{name}#{number}", url)
            except UnreadableError as error:
                yield Skipped(place, str(error))
    except (RuntimeError, OSError, ValueError, EOFError) as error:
        raise UnreadableError("el WARC está cortado o no lo es") from error
    if not pages:
        raise UnreadableError("no tiene ninguna página, o está cortado")


def from_record(record: object, key: str, place: str, name: str) -> RawText | Skipped:
    """De un objeto con «text» (y, si los dice, id, license, url, title y work) a un texto."""
    if not isinstance(record, Mapping):
        return Skipped(place, "no es un objeto")
    text = record.get("text")
    if not isinstance(text, str) or not text.strip():
        return Skipped(place, "falta el campo «text» o está vacío")
    meta = record.get("meta")
    own = {**(dict(meta) if isinstance(meta, Mapping) else {}), **record}
    return RawText(
        place=_text(own, "id") or key,
        text=text.encode("utf-8", "replace").decode(),  # JSON deja escribir medios caracteres; UTF-8, no
        license=_text(own, "license"),
        url=_text(own, "url"),
        title=_text(own, "title"),
        work=_text(own, "work") or _text(own, "id") or f"{name}#{key}",
    )


def _text(record: Mapping[str, Any], key: str) -> str:
    value = record.get(key)
    return "" if value is None else str(value).encode("utf-8", "replace").decode()[:2000]


def _capped_lines(stream: IO[bytes], most: int) -> Iterator[bytes | None]:
    """Los renglones; None por cada uno que pasa del tope, que no llega a estar entero en memoria."""
    pending, too_long = bytearray(), False
    while block := stream.read(_BLOCK):
        *whole, rest = block.split(b"\n")
        for piece in whole:
            yield None if too_long or len(pending) + len(piece) > most else bytes(pending + piece)
            pending, too_long = bytearray(), False
        pending += rest
        if len(pending) > most:
            pending, too_long = bytearray(), True
    if pending or too_long:
        yield None if too_long else bytes(pending)
