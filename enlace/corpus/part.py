"""La primera etapa: de un fichero de entrada a sus documentos limpios, con lo que hace falta para compararlos."""

import hashlib
import json
from array import array
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from enlace.config import schema
from enlace.corpus.clean.language import Spanish, keep_spanish
from enlace.corpus.clean.privacy import hide
from enlace.corpus.clean.quality import broken_rule, measure
from enlace.corpus.clean.repair import repair
from enlace.corpus.clean.words import text_id
from enlace.corpus.contamination import is_contaminated
from enlace.corpus.document import Document
from enlace.corpus.near import Ids, Signatures, signature
from enlace.corpus.read import RawText, Skipped, read_file
from enlace.corpus.table import read_documents, to_parquet
from enlace.corpus.tally import SAMPLE_CHARACTERS, Tally
from enlace.durable import publish, read_json, to_json, verify
from enlace.errors import CorruptDataError, NotFoundError

KIND = "corpus-part"
# Cambia cuando cambia lo que hace esta etapa: lo hecho por otra versión no vale.
VERSION = 2
_DOCUMENTS, _SIGNATURES, _TEXTS = "documents.parquet", "signatures.bin", "texts.bin"
_LINES, _LONG_LINES, _TALLY = "lines.bin", "long_lines.bin", "tally.json"


@dataclass(frozen=True)
class Task:
    """Un fichero que preparar. name: su ruta dentro de la fuente; folder: donde van todas las partes."""

    source: schema.TextSource
    file: Path
    name: str
    folder: Path


@dataclass(frozen=True)
class Part:
    """Una parte ya hecha, en su carpeta."""

    source: str
    name: str
    folder: Path

    def documents(self) -> Iterator[Document]:
        """Sus documentos, en orden."""
        return read_documents(self.folder / _DOCUMENTS)

    def tally(self, most_samples: int) -> Tally:
        """Sus cuentas."""
        value = read_json(self.folder / _TALLY)
        if not isinstance(value, dict):
            raise CorruptDataError("no son unas cuentas", where=str(self.folder / _TALLY))
        return Tally.from_json(value, most_samples)

    def signatures(self, width: int) -> Signatures:
        """La firma de cada documento [N, width], leída del disco según se usa."""
        return _mapped(self.folder / _SIGNATURES, np.dtype("<u4")).reshape(-1, width)

    def texts(self) -> Ids:
        """La huella de cada documento entero [N]."""
        return _mapped(self.folder / _TEXTS, np.dtype("<u8"))

    def lines(self) -> Ids:
        """Las huellas de los renglones de cada documento, una por documento."""
        return _mapped(self.folder / _LINES, np.dtype("<u8"))

    def long_lines(self) -> Ids:
        """Las de los renglones largos."""
        return _mapped(self.folder / _LONG_LINES, np.dtype("<u8"))


@dataclass
class _Columns:
    """Lo que se apunta de cada documento mientras se escribe."""

    # En vectores y no en listas: de un fichero de gigas salen decenas de millones de renglones.
    signatures: bytearray = field(default_factory=bytearray)
    texts: "array[int]" = field(default_factory=lambda: array("Q"))
    lines: "array[int]" = field(default_factory=lambda: array("Q"))
    long_lines: "array[int]" = field(default_factory=lambda: array("Q"))


def prepare(task: Task, config: schema.Corpus, forbidden: Ids) -> Part:
    """Prepara un fichero, o encuentra hecho lo que ya estaba y sigue valiendo."""
    part = Part(task.source.name, task.name, task.folder / f"{task.source.name}-{_key(task, config, forbidden)}")
    if _is_done(part.folder):
        return part
    tally, columns = Tally(config.samples_per_rule), _Columns()
    publish(
        part.folder,
        # En este orden: las demás se llenan mientras se escriben los documentos.
        {
            _DOCUMENTS: to_parquet(_documents(task, config, forbidden, tally, columns)),
            _SIGNATURES: _later(lambda: bytes(columns.signatures)),
            _TEXTS: _later(lambda: _bytes_of(columns.texts)),
            _LINES: _later(lambda: _bytes_of(columns.lines)),
            _LONG_LINES: _later(lambda: _bytes_of(columns.long_lines)),
            _TALLY: _later(lambda: to_json(tally.to_json())),
        },
        kind=KIND,
        info={"source": task.source.name, "file": task.name},
        overwrite=True,
    )
    return part


def line_ids(text: str) -> list[tuple[str, int]]:
    """Cada renglón con su huella; los vacíos no cuentan."""
    return [(line, text_id(line.strip().lower())) for line in text.split("\n") if line.strip()]


def _documents(
    task: Task, config: schema.Corpus, forbidden: Ids, tally: Tally, columns: _Columns
) -> Iterator[Document]:
    for found in read_file(task.file, task.name, config.limits):
        if isinstance(found, Skipped):
            identifier = _identifier(task, found.place)
            tally.drop("no_se_lee", identifier, found.reason)
            tally.counts["ficheros_que_no_se_leen"] += not found.place
            continue
        document = _clean(task, found, config, forbidden, tally, columns)
        if document is not None:
            yield document


def _clean(
    task: Task, raw: RawText, config: schema.Corpus, forbidden: Ids, tally: Tally, columns: _Columns
) -> Document | None:
    """El documento limpio, o None si alguna regla lo tira."""
    identifier, source = _identifier(task, raw.place), task.source
    tally.add("entra", raw.text)
    licence = raw.license or source.license or ""
    text = repair(raw.text)
    tally.counts["reparados"] += text != raw.text
    spanish = keep_spanish(text, config.language)
    measured = measure(spanish.text)
    rule = (
        _licence_rule(licence, config)
        or _language_rule(spanish, source)
        or broken_rule(measured, config.quality[source.quality])
        or ("contaminado" if is_contaminated(measured.ids, forbidden, config.contamination.words) else None)
    )
    if rule:
        # Un ejemplo también puede llevar datos de alguien.
        tally.drop(rule, identifier, text, hide(text[:SAMPLE_CHARACTERS], config.privacy)[0])
        return None
    text, hidden = hide(spanish.text, config.privacy)
    for kind, count in hidden.items():
        tally.counts[f"escondido.{kind}"] += count
    tally.add("queda", text)
    tally.counts[f"palabras.{len(measured.words).bit_length():02d}"] += 1
    tally.add(f"licencia.{licence}", text)
    _note(columns, text, measured.ids, config.duplicates)
    return Document(identifier, text, source.name, licence, raw.url, raw.title, raw.work or identifier)


def _language_rule(spanish: Spanish, source: schema.TextSource) -> str | None:
    if spanish.verdict == "otro":
        return "idioma"
    return "idioma_dudoso" if spanish.verdict == "no se sabe" and not source.spanish else None


def _licence_rule(licence: str, config: schema.Corpus) -> str | None:
    if not licence:
        return "sin_licencia"
    return "licencia" if config.licenses is not None and licence not in config.licenses else None


def _note(columns: _Columns, text: str, ids: Ids, config: schema.Duplicates) -> None:
    columns.signatures += signature(ids, config).astype("<u4").tobytes()
    columns.texts.append(text_id(text))
    lines = line_ids(text)
    columns.lines.extend(sorted({number for _, number in lines}))
    columns.long_lines.extend(sorted({number for line, number in lines if len(line) >= config.line_characters}))


def _identifier(task: Task, place: str) -> str:
    return f"{task.source.name}/{task.name}#{place}" if place else f"{task.source.name}/{task.name}"


def _key(task: Task, config: schema.Corpus, forbidden: Ids) -> str:
    """La huella de todo lo que decide cómo queda una parte: el fichero, sus umbrales y lo prohibido."""
    with task.file.open("rb") as stream:
        content = hashlib.file_digest(stream, "sha256").hexdigest()
    source = task.source
    decides = {
        "version": VERSION,
        "name": task.name,
        "content": content,
        "source": [source.name, source.license, source.quality, source.spanish],
        "quality": config.quality[source.quality].model_dump(),
        "forbidden": hashlib.sha256(forbidden.tobytes()).hexdigest(),
        **{
            key: value.model_dump() if hasattr(value, "model_dump") else value
            for key in ("licenses", "language", "privacy", "duplicates", "contamination", "limits", "samples_per_rule")
            for value in [getattr(config, key)]
        },
    }
    return hashlib.sha256(json.dumps(decides, sort_keys=True).encode()).hexdigest()[:24]


def _is_done(folder: Path) -> bool:
    if not folder.exists():
        return False
    try:
        verify(folder, KIND)
    except (CorruptDataError, NotFoundError):
        return False  # se hace otra vez
    return True


def _later(make: Callable[[], bytes]) -> Iterator[bytes]:
    yield make()


def _bytes_of(numbers: "array[int]") -> bytes:
    return np.frombuffer(numbers, np.uint64).astype("<u8").tobytes() if numbers else b""


def _mapped(path: Path, dtype: np.dtype[Any]) -> NDArray[Any]:
    # Un fichero vacío no se puede proyectar en memoria.
    return np.memmap(path, dtype, "r") if path.stat().st_size else np.empty(0, dtype)
