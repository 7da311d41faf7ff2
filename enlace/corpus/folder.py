"""Los textos de una carpeta de la persona: .txt y .md enteros, .jsonl por líneas."""

import json
from pathlib import Path

from enlace.corpus.document import Document, pieces, tidy
from enlace.durable.canonical import integer, json_reason
from enlace.durable.plain import files_in
from enlace.durable.space import reading
from enlace.errors import CorruptDataError, NotFoundError

SOURCE = "carpeta local"
LICENCE = "la de los textos de la carpeta (sin declarar)"
_SUFFIXES = {".txt", ".md", ".jsonl"}


def text_files(folder: Path) -> list[Path]:
    """Los ficheros de texto de la carpeta y sus subcarpetas, en orden.

    NotFoundError si no hay ninguno; RefusedError si hay un enlace.
    """
    files = [file for file in files_in(folder) if file.suffix.lower() in _SUFFIXES]
    if not files:
        raise NotFoundError(
            "no hay textos en la carpeta",
            where=str(folder),
            why=f"se buscan ficheros {', '.join(sorted(_SUFFIXES))}",
            fix="da una carpeta con tus textos en UTF-8",
        )
    return files


def read_folder(folder: Path) -> list[Document]:
    """Los documentos de la carpeta; los textos largos se parten. CorruptDataError, con fichero:línea, si algo falla."""
    return [document for file in text_files(folder) for document in _documents(file, file.relative_to(folder))]


def _documents(file: Path, name: Path) -> list[Document]:
    content = _decoded(file)
    if file.suffix.lower() == ".jsonl":
        lines = enumerate(content.split("\n"), start=1)
        return [_from_line(line, f"{name.as_posix()}:{number}", file) for number, line in lines if line.strip()]
    return [
        Document(id=f"{name.as_posix()}#{part}", text=text, source=SOURCE, license=LICENCE, title=name.stem)
        for part, text in enumerate(pieces(tidy(content)))
    ]


def _from_line(line: str, place: str, file: Path) -> Document:
    where = f"{file}:{place.rpartition(':')[2]}"
    try:
        record = json.loads(line, parse_int=integer)
        json.dumps(record, ensure_ascii=False).encode("utf-8")  # JSON deja escribir medios caracteres; UTF-8, no
    except (ValueError, RecursionError) as error:
        raise _unreadable(where, json_reason(error)) from error
    text = record.get("text") if isinstance(record, dict) else None
    if not isinstance(text, str) or not tidy(text):
        raise _unreadable(where, "falta el campo «text» o está vacío")
    return Document(
        id=str(record.get("id") or place),
        text=tidy(text),
        source=str(record.get("source") or SOURCE),
        license=str(record.get("license") or LICENCE),
        url=str(record.get("url") or ""),
        title=str(record.get("title") or ""),
    )


def _decoded(file: Path) -> str:
    with reading(file):
        content = file.read_bytes()
    try:
        return content.decode("utf-8-sig")
    except ValueError as error:
        raise _unreadable(str(file), json_reason(error)) from error


def _unreadable(where: str, why: str) -> CorruptDataError:
    return CorruptDataError("el texto no se puede leer", where=where, why=why, fix="corrígelo o quítalo de la carpeta")
