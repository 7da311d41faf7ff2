"""El fichero suelto: con su nombre solo está entero, el de antes o el nuevo."""

import contextlib
import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from enlace.durable.disk import DISK, Buffer, Disk, make_folders
from enlace.durable.space import writing
from enlace.durable.staging import staging_path

Content: TypeAlias = Buffer | Iterable[Buffer]


@dataclass(frozen=True)
class FileEntry:
    """Lo que identifica el contenido de un fichero: su tamaño en bytes y su SHA-256 en hexadecimal."""

    bytes: int
    sha256: str


def write_file(path: Path, content: Content, *, disk: Disk = DISK) -> None:
    """Escribe o sustituye `path` de una vez (y crea sus carpetas); al volver, está a salvo de un corte.

    ResourceError si no hay sitio y EnlaceError si el disco falla: lo que hubiera en `path` sigue intacto.
    """
    with writing(path):
        make_folders(path.parent, disk)
        staged = staging_path(path, "tmp")
        try:
            write_new(staged, content, disk)
            disk.rename(staged, path)
        except BaseException:
            with contextlib.suppress(OSError):  # importa el primer fallo; lo que quede lo barre `sweep`
                disk.unlink(staged)
            raise
        disk.fsync_dir(path.parent)


def write_new(path: Path, content: Content, disk: Disk) -> FileEntry:
    """Crea `path`, resume lo que escribe a medida que pasa y lo deja en el disco; su nombre aún no está a salvo."""
    digest = hashlib.sha256()
    size = 0
    with disk.create(path) as file:
        for buffer in (content,) if isinstance(content, bytes | memoryview) else content:
            disk.write(file, buffer)
            digest.update(buffer)
            size += memoryview(buffer).nbytes
        disk.fsync(file)
    return FileEntry(size, digest.hexdigest())
