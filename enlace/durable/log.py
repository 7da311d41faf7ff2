"""El registro: un JSON por línea que solo crece, y que puede volver al punto exacto de un punto de control."""

import contextlib
import hashlib
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from enlace.durable.canonical import MAX_BYTES, Json, parse_json, to_json
from enlace.durable.disk import DISK, Disk, make_folders
from enlace.durable.plain import plain_status
from enlace.durable.space import reading, writing
from enlace.errors import CorruptDataError

if TYPE_CHECKING:
    from hashlib import _Hash

_CHUNK = 1 << 20


@dataclass(frozen=True)
class Position:
    """Un punto del registro: cuántos bytes hay hasta él y su SHA-256 en hexadecimal."""

    bytes: int
    sha256: str


class AppendLog:
    """Registro abierto para añadir. Lo usa un solo hilo; una última línea incompleta (un corte) se quita al abrir."""

    def __init__(self, path: Path, *, disk: Disk = DISK) -> None:
        self._path = path
        self._disk = disk
        with writing(path):
            make_folders(path.parent, disk)
            if os.path.lexists(path):
                plain_status(path)  # abrir una tubería esperaría para siempre, y un enlace recortaría otro fichero
            self._file = disk.append(path)
            try:
                disk.fsync_dir(path.parent)
                self._size, self._digest = _complete_lines(path)
                disk.truncate(self._file, self._size)
            except BaseException:
                self._file.close()
                raise

    def append(self, record: Mapping[str, Json]) -> None:
        """Añade una línea; no está a salvo de un corte hasta `sync`. ValueError si no cabe en JSON (NaN)."""
        line = to_json(record) + b"\n"
        with writing(self._path):
            try:
                self._disk.write(self._file, line)
            except BaseException:
                with contextlib.suppress(OSError):  # media línea se pegaría a la siguiente
                    self._disk.truncate(self._file, self._size)
                raise
        self._size += len(line)
        self._digest.update(line)

    def sync(self) -> Position:
        """Pone a salvo todo lo añadido y devuelve el punto al que `rewind` puede volver."""
        with writing(self._path):
            self._disk.fsync(self._file)
        return Position(self._size, self._digest.hexdigest())

    def rewind(self, position: Position) -> None:
        """Borra lo posterior a `position`. CorruptDataError, sin tocar nada, si lo anterior no es lo de entonces."""
        digest = _prefix_digest(self._path, position.bytes)
        if not 0 <= position.bytes <= self._size or digest.hexdigest() != position.sha256:
            raise CorruptDataError(
                "el registro no es el que se guardó con el punto de control",
                where=str(self._path),
                why=f"sus primeros {position.bytes} bytes han cambiado o faltan",
                fix="recupéralo de una copia o empieza una corrida nueva",
            )
        with writing(self._path):
            self._disk.truncate(self._file, position.bytes)
            self._disk.fsync(self._file)
        self._size, self._digest = position.bytes, digest

    def close(self) -> None:
        """Cierra el fichero, sin `sync`."""
        self._file.close()


def read_log(path: Path) -> list[dict[str, Json]]:
    """Todos los registros de `path`, sin la última línea si está incompleta.

    NotFoundError si no existe; CorruptDataError, con el número de línea, si una no es un objeto JSON o no acaba nunca.
    """
    plain_status(path)
    with reading(path), path.open("rb") as file:
        lines = enumerate(iter(lambda: file.readline(MAX_BYTES), b""), start=1)
        return [_record(line, f"{path}:{number}") for number, line in lines if len(line) == MAX_BYTES or b"\n" in line]


def _record(line: bytes, where: str) -> dict[str, Json]:
    if len(line) == MAX_BYTES:
        raise CorruptDataError(
            "la línea es demasiado larga",
            where=where,
            why=f"pasa de {MAX_BYTES} bytes",
            fix="recupera el registro de una copia",
        )
    value = parse_json(line, where)
    if not isinstance(value, dict):
        raise CorruptDataError("la línea no es un objeto JSON", where=where, fix="recupera el registro de una copia")
    return value


def _complete_lines(path: Path) -> "tuple[int, _Hash]":
    """Cuántos bytes hay hasta el último salto de línea, y su resumen."""
    size, total, digest = 0, 0, hashlib.sha256()
    complete = digest.copy()
    with path.open("rb") as file:
        while chunk := file.read(_CHUNK):
            end = chunk.rfind(b"\n") + 1
            digest.update(chunk[:end])
            if end:
                size, complete = total + end, digest.copy()
            digest.update(chunk[end:])
            total += len(chunk)
    return size, complete


def _prefix_digest(path: Path, size: int) -> "_Hash":
    digest = hashlib.sha256()
    with reading(path), path.open("rb") as file:
        while size > 0 and (chunk := file.read(min(size, _CHUNK))):
            digest.update(chunk)
            size -= len(chunk)
    return digest
