"""Documentos de texto en ficheros .jsonl, .jsonl.zst y .txt, leídos de uno en uno y siempre en el mismo orden."""

import hashlib
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path

import zstandard

from enlace.durable import verify
from enlace.durable.canonical import integer, json_reason
from enlace.durable.manifest import MANIFEST
from enlace.durable.plain import files_in
from enlace.durable.space import reading
from enlace.errors import CorruptDataError, NotFoundError

_SUFFIXES = (".jsonl", ".jsonl.zst", ".txt")
# Cada 4 bytes de zstd pueden ser 128 KiB de texto: leído de poco en poco, lo que sale de una vez no pasa de 32 MiB.
_CHUNK_BYTES = 1 << 10
# La Biblia entera no llega a la tercera parte, y 16 MiB de corchetes ya ocupan 500 MB al leerlos.
MAX_LINE_BYTES = 1 << 24
_HOW_TO_GET = "consigue texto en español con: scripts/prepare_smoke_data.sh"


@dataclass(frozen=True)
class Document:
    """Un texto y su identidad, que decide si se entrena o se valida con él."""

    id: str
    text: str


def read_documents(path: Path) -> Iterator[Document]:
    """Recorre los documentos de un fichero o de una carpeta (en orden de nombre, con sus subcarpetas).

    Si la carpeta es un artefacto publicado, antes se comprueba entera. NotFoundError si no hay ninguno;
    CorruptDataError, con fichero:línea, si alguno no se puede leer; RefusedError si en la carpeta hay un enlace.
    """
    for file in _document_files(path):
        if file.name.endswith(".txt"):
            yield _whole_file(file)
        else:
            yield from _json_lines(file)


def _document_files(path: Path) -> list[Path]:
    if not os.path.lexists(path):  # y no path.exists(), que con un nombre demasiado largo falla
        raise NotFoundError("no existe la fuente de datos", where=str(path), fix=_HOW_TO_GET)
    if (path / MANIFEST).is_file():
        verify(path, "documents")
    candidates = [path] if path.is_file() else files_in(path)
    files = [file for file in candidates if file.name.endswith(_SUFFIXES)]
    if not files:
        raise NotFoundError(
            "no hay documentos", where=str(path), why=f"se buscan ficheros {', '.join(_SUFFIXES)}", fix=_HOW_TO_GET
        )
    return files


def _whole_file(file: Path) -> Document:
    with _blame(str(file)), reading(file):
        return _document("", file.read_bytes().decode("utf-8-sig"))


def _json_lines(file: Path) -> Iterator[Document]:
    for number, line in enumerate(_lines(file), start=1):
        with _blame(f"{file}:{number}"):
            if len(line) > MAX_LINE_BYTES:
                raise ValueError(f"la línea pasa de {MAX_LINE_BYTES >> 20} MiB: parte ese documento en varios")
            record = json.loads(line.decode("utf-8-sig"), parse_int=integer)
            if not isinstance(record, dict) or not isinstance(record.get("text"), str):
                raise ValueError('falta el campo «text»: cada línea es un objeto como {"id": …, "text": …}')
            id_ = record.get("id")
            yield _document("" if id_ is None else str(id_), record["text"])


def _document(id_: str, text: str) -> Document:
    if not text:
        raise ValueError("el texto está vacío")
    # Sin id propio, la identidad es el contenido: no depende de dónde está el fichero ni de cómo se llama.
    content = text.encode("utf-8")
    return Document(id_ or hashlib.sha256(content).hexdigest(), text)


@contextmanager
def _blame(where: str) -> Iterator[None]:
    try:
        yield
    except (ValueError, RecursionError) as error:
        raise CorruptDataError(
            "el documento no se puede leer",
            where=where,
            why=json_reason(error),
            fix="corrige esa línea o quita el fichero",
        ) from error


def _lines(file: Path) -> Iterator[bytes]:
    """Las líneas del fichero. De la que pasa de MAX_LINE_BYTES sale solo el principio, para que se rechace."""
    with reading(file), file.open("rb") as stream:
        if file.name.endswith(".jsonl"):
            yield from iter(lambda: stream.readline(MAX_LINE_BYTES + 1), b"")
        else:
            yield from _split(_decompressed(iter(lambda: stream.read(_CHUNK_BYTES), b""), str(file)))


def _split(chunks: Iterator[bytes]) -> Iterator[bytes]:
    pending = bytearray()
    for chunk in chunks:
        # De una en una: una lista con las líneas vacías de un trozo ocuparía cien veces más que él.
        for part in BytesIO(chunk):
            pending += part
            if part.endswith(b"\n") or len(pending) > MAX_LINE_BYTES:
                yield bytes(pending)
                pending.clear()
    if pending:
        yield bytes(pending)


def _decompressed(chunks: Iterator[bytes], where: str) -> Iterator[bytes]:
    """Descomprime zstd detectando lo que un lector de flujo calla: un fichero cortado por la mitad."""
    decompressor = zstandard.ZstdDecompressor().decompressobj()
    try:
        for chunk in chunks:
            while chunk:
                if decompressor.eof:
                    decompressor = zstandard.ZstdDecompressor().decompressobj()
                yield decompressor.decompress(chunk)
                chunk = decompressor.unused_data
    except zstandard.ZstdError as error:
        raise _damaged(where, "no es zstd, le han cambiado o añadido bytes, o pide demasiada memoria") from error
    if not decompressor.eof:
        raise _damaged(where, "el fichero está cortado")


def _damaged(where: str, why: str) -> CorruptDataError:
    return CorruptDataError("el fichero comprimido está dañado", where=where, why=why, fix="vuelve a crearlo o quítalo")
