"""Lo único que escribe bytes importantes: enteros, comprobables y a prueba de cortes, o no los escribe."""

from enlace.durable.artifact import latest, publish, verify
from enlace.durable.canonical import Json, read_json, to_json
from enlace.durable.disk import DISK, Buffer, Disk
from enlace.durable.file import Content, FileEntry, write_file
from enlace.durable.lock import lock
from enlace.durable.log import AppendLog, Position, read_log
from enlace.durable.manifest import Manifest
from enlace.durable.space import require_space
from enlace.durable.staging import remove, sweep

__all__ = [
    "DISK",
    "AppendLog",
    "Buffer",
    "Content",
    "Disk",
    "FileEntry",
    "Json",
    "Manifest",
    "Position",
    "latest",
    "lock",
    "publish",
    "read_json",
    "read_log",
    "remove",
    "require_space",
    "sweep",
    "to_json",
    "verify",
    "write_file",
]
