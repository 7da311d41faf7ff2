"""El manifiesto: qué ficheros forman un artefacto, de dónde salen y la huella de cada uno y de sí mismo."""

import hashlib
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from enlace import __version__
from enlace.durable.canonical import Json, parse_json, to_json
from enlace.durable.file import FileEntry
from enlace.errors import CorruptDataError

MANIFEST = "manifest.json"
FORMAT = 1
_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,199}")
_SHA256 = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True)
class Manifest:
    """El contenido de `manifest.json`.

    parents: nombre → `sha256` del artefacto del que sale. created: fecha UTC en ISO 8601. sha256: el de todo lo
    demás en JSON canónico; identifica al artefacto entero, porque incluye la huella de cada fichero.
    """

    kind: str
    format: int
    files: Mapping[str, FileEntry]
    parents: Mapping[str, str]
    info: Mapping[str, Json]
    code_version: str
    created: str
    sha256: str


def is_plain_name(name: str) -> bool:
    """Si es un nombre que cuelga directamente de la carpeta, y no el del propio manifiesto."""
    return _NAME.fullmatch(name) is not None and name != MANIFEST


def corrupt(path: Path, why: str) -> CorruptDataError:
    """El error de un fichero de un artefacto que no es el que se guardó."""
    return CorruptDataError(
        f"{path.name} no es lo que se guardó",
        where=str(path),
        why=why,
        fix="recupera la carpeta entera de una copia o bórrala y vuelve a crearla",
    )


def encode_manifest(
    kind: str, files: Mapping[str, FileEntry], parents: Mapping[str, str], info: Mapping[str, Json]
) -> bytes:
    """Los bytes de un manifiesto nuevo, con su propia huella dentro."""
    body: dict[str, Json] = {
        "kind": kind,
        "format": FORMAT,
        "files": {name: asdict(entry) for name, entry in files.items()},
        "parents": dict(parents),
        "info": dict(info),
        "code_version": __version__,
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
    }
    return to_json(body | {"sha256": _fingerprint(body)})


def decode_manifest(data: bytes, path: Path) -> Manifest:
    """Lee los bytes de `path`. CorruptDataError si cambió un solo byte o si su forma no es la esperada."""
    body: Any = parse_json(data, str(path))
    if not isinstance(body, dict) or not _is_canonical(body, data):
        raise corrupt(path, "no está escrito como ENLACE lo escribe")
    stored = body.pop("sha256", None)
    if stored != _fingerprint(body):
        raise corrupt(path, "su contenido no coincide con su propia huella")
    if body.get("format") != FORMAT:
        raise corrupt(path, f"es del formato {body.get('format')} y esta versión de ENLACE lee el {FORMAT}")
    try:
        files = {name: _entry(name, entry) for name, entry in body.pop("files").items()}
        manifest = Manifest(files=files, sha256=stored, **body)
        _require_types(manifest)
        return manifest
    except ValueError as error:
        raise corrupt(path, str(error)) from error
    except (AttributeError, KeyError, TypeError) as error:
        raise corrupt(path, "le falta o le sobra algo, o no es del tipo que debe") from error


def _entry(name: str, entry: dict[str, Any]) -> FileEntry:
    result = FileEntry(**entry)
    if not is_plain_name(name):
        raise ValueError(f"el nombre «{name}» se sale de la carpeta")
    if type(result.bytes) is not int or result.bytes < 0 or not _SHA256.fullmatch(result.sha256):
        raise ValueError(f"el tamaño o la huella de «{name}» no tienen sentido")
    return result


def _require_types(manifest: Manifest) -> None:
    """La huella la calcula quien lo escribe, así que no dice que su contenido tenga sentido."""
    texts = [manifest.kind, manifest.code_version, manifest.created]
    if not isinstance(manifest.parents, dict) or not isinstance(manifest.info, dict):
        raise ValueError("parents e info son objetos")
    if not all(isinstance(text, str) for text in [*texts, *manifest.parents.values()]):
        raise ValueError("kind, code_version, created y los padres son textos")


def _is_canonical(body: Json, data: bytes) -> bool:
    try:
        return to_json(body) == data
    except RecursionError:  # escribir gasta más pila que leer
        return False


def _fingerprint(body: Mapping[str, Json]) -> str:
    return hashlib.sha256(to_json(body)).hexdigest()
