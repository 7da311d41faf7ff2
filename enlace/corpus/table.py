"""Documentos en Parquet: se escriben y se leen por tandas, sin tenerlos nunca todos en memoria."""

import io
from collections.abc import Iterable, Iterator
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any

import pyarrow
from pyarrow import parquet

from enlace.corpus.document import Document
from enlace.errors import CorruptDataError

_ROWS = 2000
_BATCH_BYTES = 16_000_000
_COLUMNS = tuple(field.name for field in fields(Document))
_SCHEMA = pyarrow.schema([(name, pyarrow.string()) for name in _COLUMNS])


def to_parquet(documents: Iterable[Document]) -> Iterator[bytes]:
    """Los bytes de un fichero Parquet con zstd, a medida que llegan los documentos; los mismos para los mismos."""
    sink = _Sink()
    writer = parquet.ParquetWriter(sink, _SCHEMA, compression="zstd", compression_level=3)
    rows: list[dict[str, str]] = []
    size = 0
    for document in documents:
        rows.append(asdict(document))
        size += len(document.text)
        if len(rows) >= _ROWS or size >= _BATCH_BYTES:
            writer.write_table(pyarrow.Table.from_pylist(rows, schema=_SCHEMA))
            rows, size = [], 0
            yield sink.take()
    if rows:
        writer.write_table(pyarrow.Table.from_pylist(rows, schema=_SCHEMA))
    writer.close()
    yield sink.take()


def read_documents(path: Path) -> Iterator[Document]:
    """Los documentos de un Parquet escrito por `to_parquet`. CorruptDataError si no lo es."""
    try:
        for batch in parquet.ParquetFile(path).iter_batches(batch_size=256):
            yield from (Document(**row) for row in batch.to_pylist())
    except (pyarrow.ArrowException, TypeError, OSError) as error:
        raise CorruptDataError("no es un Parquet de documentos", where=str(path), why=str(error)[:200]) from error


class _Sink(io.RawIOBase):
    """Un fichero que solo crece y del que se va quitando lo escrito."""

    def __init__(self) -> None:
        self._parts: list[bytes] = []
        self._position = 0

    def writable(self) -> bool:
        """Siempre."""
        return True

    def write(self, data: Any) -> int:
        """Apunta unos bytes."""
        part = bytes(data)
        self._parts.append(part)
        self._position += len(part)
        return len(part)

    def tell(self) -> int:
        """Los bytes escritos desde el principio, se hayan quitado o no."""
        return self._position

    def take(self) -> bytes:
        """Quita y da lo escrito desde la última vez."""
        taken = b"".join(self._parts)
        self._parts.clear()
        return taken
