"""El artefacto: una carpeta que aparece entera, con un manifiesto que delata cualquier byte cambiado."""

import contextlib
import hashlib
import os
import re
from collections.abc import Mapping
from pathlib import Path

from enlace.durable.canonical import Json, read_bounded
from enlace.durable.disk import DISK, Disk, make_folders
from enlace.durable.file import Content, FileEntry, write_new
from enlace.durable.manifest import MANIFEST, Manifest, corrupt, decode_manifest, encode_manifest, is_plain_name
from enlace.durable.plain import plain_status
from enlace.durable.space import reading, writing
from enlace.durable.staging import delete_tree, remove, staging_path
from enlace.errors import CorruptDataError, EnlaceError, NotFoundError


def publish(
    path: Path,
    files: Mapping[str, Content],
    *,
    kind: str,
    parents: Mapping[str, str] = {},
    info: Mapping[str, Json] = {},
    overwrite: bool = False,
    disk: Disk = DISK,
) -> Manifest:
    """Escribe la carpeta `path` entera, con su manifiesto, o no deja nada; al volver, está a salvo de un corte.

    Los contenidos iterables se resumen mientras se escriben, sin otra copia en memoria. Se puede llamar desde
    varios hilos. Con `overwrite`, lo que hubiera en `path` se quita solo cuando lo nuevo ya está entero en el disco;
    entre quitarlo y poner lo nuevo hay un instante sin `path`: es para lo que se puede volver a publicar.
    ResourceError si no hay sitio; EnlaceError si el disco falla o `path` ya existe; ValueError si un nombre no cuelga
    directamente de la carpeta o `info` no cabe en JSON.
    """
    for name in files:
        if not is_plain_name(name):
            raise ValueError(f"«{name}» no vale como nombre de fichero de un artefacto")
    with writing(path):
        make_folders(path.parent, disk)
        if os.path.lexists(path) and not overwrite:
            raise EnlaceError(
                "ya existe y un artefacto no se sobrescribe", where=str(path), fix="bórralo antes o usa otro nombre"
            )
        staged = staging_path(path, "tmp")
        try:
            manifest = _stage(staged, files, kind, parents, info, disk)
            if overwrite and os.path.lexists(path):
                remove(path, disk=disk)
            _commit(staged, path, disk)
        except BaseException:
            with contextlib.suppress(OSError):  # importa el primer fallo; lo que quede lo barre `sweep`
                delete_tree(staged, disk)
            raise
    return manifest


def verify(path: Path, kind: str | None = None) -> Manifest:
    """Lee el artefacto entero y comprueba cada byte.

    NotFoundError si no existe. CorruptDataError, con el fichero y lo que difiere, si falta o sobra alguno, cambia
    su tamaño o su contenido, no es un fichero normal, el manifiesto no es de fiar o no es del tipo `kind`.
    """
    manifest_path = path / MANIFEST
    with reading(path):
        names = {place.name for place in path.iterdir()}
    if MANIFEST not in names:
        raise corrupt(manifest_path, "falta el manifiesto")
    manifest = decode_manifest(read_bounded(manifest_path), manifest_path)
    if kind is not None and manifest.kind != kind:
        raise corrupt(manifest_path, f"es de tipo «{manifest.kind}» y se esperaba «{kind}»")
    for name in sorted((names | manifest.files.keys()) - {MANIFEST}):
        _check_file(path / name, manifest.files.get(name), present=name in names)
    return manifest


def latest(folder: Path, prefix: str, kind: str) -> tuple[Path | None, list[tuple[Path, CorruptDataError]]]:
    """El `prefix-N` de mayor N que se verifica, y los de N mayor que se han rechazado, con su motivo."""
    rejected: list[tuple[Path, CorruptDataError]] = []
    for path in _numbered(folder, prefix):
        try:
            verify(path, kind)
        except CorruptDataError as error:
            rejected.append((path, error))
        except NotFoundError:
            continue  # lo han borrado mientras se miraba
        else:
            return path, rejected
    return None, rejected


def _stage(
    staged: Path,
    files: Mapping[str, Content],
    kind: str,
    parents: Mapping[str, str],
    info: Mapping[str, Json],
    disk: Disk,
) -> Manifest:
    disk.mkdir(staged)
    entries = {name: write_new(staged / name, content, disk) for name, content in files.items()}
    encoded = encode_manifest(kind, entries, parents, info)
    write_new(staged / MANIFEST, encoded, disk)
    disk.fsync_dir(staged)
    return decode_manifest(encoded, staged / MANIFEST)


def _commit(staged: Path, path: Path, disk: Disk) -> None:
    disk.rename(staged, path)
    try:
        disk.fsync_dir(path.parent)
    except BaseException:
        # No se sabe si el nombre llegó al disco: lo que no se puede prometer, no se deja a la vista.
        with contextlib.suppress(OSError):
            disk.rename(path, staged)
        raise


def _numbered(folder: Path, prefix: str) -> list[Path]:
    if not folder.is_dir():
        return []
    pattern = re.compile(rf"{re.escape(prefix)}-([0-9]+)")
    with reading(folder):
        matches = [(pattern.fullmatch(place.name), place) for place in folder.iterdir()]
    return [place for _, place in sorted(((int(m[1]), place) for m, place in matches if m), reverse=True)]


def _check_file(path: Path, entry: FileEntry | None, *, present: bool) -> None:
    if entry is None:
        raise corrupt(path, "sobra: no está en el manifiesto")
    if not present:
        raise corrupt(path, "falta")
    status = plain_status(path)
    if status.st_size != entry.bytes:
        raise corrupt(path, f"mide {status.st_size} bytes y el manifiesto dice {entry.bytes}")
    with reading(path), path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    if digest != entry.sha256:
        raise corrupt(path, f"su SHA-256 es {digest} y el manifiesto dice {entry.sha256}")
