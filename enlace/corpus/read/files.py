"""Qué lector le toca a cada fichero, y los que llevan otros dentro."""

import bz2
import gzip
import lzma
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import IO, cast

import pyarrow

from enlace.config import schema
from enlace.corpus.read.books import read_docx, read_epub
from enlace.corpus.read.plain import read_html, read_markdown, read_pdf, read_text
from enlace.corpus.read.raw import Found, RawText, Reader, Skipped, UnreadableError
from enlace.corpus.read.records import read_jsonl, read_parquet, read_warc
from enlace.corpus.read.wiki import read_wiki
from enlace.durable.plain import files_in
from enlace.durable.space import reading
from enlace.errors import EnlaceError, NotFoundError

_READERS: Mapping[str, Reader] = MappingProxyType(
    {
        "txt": read_text,
        "md": read_markdown,
        "html": read_html,
        "htm": read_html,
        "xhtml": read_html,
        "pdf": read_pdf,
        "epub": read_epub,
        "docx": read_docx,
        "jsonl": read_jsonl,
        "parquet": read_parquet,
        "warc": read_warc,
        "xml": read_wiki,
    }
)
_COMPRESSED: Mapping[str, Callable[[IO[bytes]], IO[bytes]]] = MappingProxyType(
    {
        "gz": lambda stream: cast(IO[bytes], gzip.GzipFile(fileobj=stream)),
        "bz2": lambda stream: cast(IO[bytes], bz2.BZ2File(stream)),
        "xz": lambda stream: cast(IO[bytes], lzma.LZMAFile(stream)),
        # El de pyarrow y no el de zstandard, que se calla cuando está cortado.
        "zst": lambda stream: cast(IO[bytes], pyarrow.CompressedInputStream(pyarrow.PythonFile(stream, "r"), "zstd")),
    }
)
_BROKEN = (OSError, EOFError, ValueError, lzma.LZMAError, zlib.error, tarfile.TarError)
_BROKEN_ZIP = (zipfile.BadZipFile, NotImplementedError, RuntimeError)


def source_files(path: Path) -> list[Path]:
    """Los ficheros de una fuente, en orden. NotFoundError si no hay ninguno; RefusedError si hay un enlace."""
    if path.is_file():
        return [path]
    files = files_in(path) if path.is_dir() else []
    if not files:
        raise NotFoundError(
            "no hay textos", where=str(path), fix="pon ahí tus textos, o cambia «path» en la configuración"
        )
    return files


def read_file(path: Path, name: str, limits: schema.Limits) -> Found:
    """Los textos de un fichero. name: su ruta dentro de la fuente. Lo que no se puede leer sale como Skipped."""
    try:
        with reading(path):
            stream = path.open("rb")
        with stream:
            yield from _read(stream, name, limits)
    except UnreadableError as error:
        yield Skipped("", str(error))
    except EnlaceError as error:  # sin permiso, o el disco falla
        yield Skipped("", f"{error.what}: {error.why}")
    except (*_BROKEN, *_BROKEN_ZIP, MemoryError) as error:
        yield Skipped("", f"está cortado o dañado: {type(error).__name__}")


def _read(stream: IO[bytes], name: str, limits: schema.Limits) -> Found:
    suffixes = name.lower().rpartition("/")[2].split(".")[1:]
    if suffixes and suffixes[-1] == "zip":
        yield from _read_zip(stream, limits)
    elif suffixes and (suffixes[-1] in ("tar", "tgz") or suffixes[-2:-1] == ["tar"]):
        yield from _read_tar(stream, limits)
    elif suffixes and suffixes[-1] in _COMPRESSED:
        inner = name.rpartition(".")[0]
        # fastwarc sabe leer cada registro comprimido por su cuenta.
        unpacked = stream if inner.lower().endswith(".warc") else _COMPRESSED[suffixes[-1]](stream)
        yield from _reader(inner)(unpacked, name, limits)
    else:
        yield from _reader(name)(stream, name, limits)


def _reader(name: str) -> Reader:
    suffix = name.lower().rpartition(".")[2]
    if suffix not in _READERS:
        raise UnreadableError(f"no se sabe leer «.{suffix[:20]}»; se leen: {', '.join(sorted(_READERS))}, zip y tar")
    return _READERS[suffix]


def _read_zip(stream: IO[bytes], limits: schema.Limits) -> Found:
    with zipfile.ZipFile(stream) as archive:
        members = sorted(info.filename for info in archive.infolist() if not info.is_dir())
        _require_few(len(members), limits)
        for member in members:
            with archive.open(name=member) as inner:
                yield from _inside(inner, member, limits)


def _read_tar(stream: IO[bytes], limits: schema.Limits) -> Found:
    with tarfile.open(fileobj=stream, mode="r:*") as archive:
        members = sorted((member for member in archive if member.isfile()), key=lambda member: member.name)
        _require_few(len(members), limits)
        for member in members:
            inner = archive.extractfile(member)
            if inner is not None:
                yield from _inside(inner, member.name, limits)


def _inside(stream: IO[bytes], member: str, limits: schema.Limits) -> Found:
    """Lo de dentro nunca se escribe en disco: su nombre no lleva a ningún sitio."""
    try:
        if member.lower().endswith((".zip", ".tar", ".tgz", ".tar.gz")):
            raise UnreadableError("es un archivo dentro de otro")
        for found in _read(stream, member, limits):
            place = f"{member}#{found.place}" if found.place else member
            if isinstance(found, Skipped):
                yield Skipped(place, found.reason)
            else:
                yield RawText(place, found.text, found.license, found.url, found.title, found.work)
    except UnreadableError as error:
        yield Skipped(member, str(error))
    except (*_BROKEN, *_BROKEN_ZIP) as error:
        yield Skipped(member, f"está cortado o dañado: {type(error).__name__}")


def _require_few(count: int, limits: schema.Limits) -> None:
    if count > limits.max_archive_members:
        raise UnreadableError(f"lleva más de {limits.max_archive_members} ficheros (limits.max_archive_members)")
