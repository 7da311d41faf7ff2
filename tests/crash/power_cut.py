"""Todos los discos que puede encontrar quien enciende la máquina tras un corte de luz.

El modelo es el POSIX más pesimista: el contenido está a salvo solo tras `fsync` y un nombre (creado, cambiado o
borrado) solo tras `fsync_dir` de su carpeta; de lo demás llega cualquier subconjunto, cada cosa por su cuenta, y el
contenido sin `fsync` puede estar entero, vacío o a medias. Es el de ALICE (Pillai et al., OSDI 2014), lo bastante
pequeño como para recorrerlo entero.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

Tree = tuple[tuple[str, "bytes | Tree"], ...]


@dataclass
class File:
    durable: bytes = b""
    current: bytes = b""

    def states(self) -> set[bytes]:
        torn = self.current[: (len(self.durable) + len(self.current)) // 2]
        return {self.durable, self.current, torn}


@dataclass
class Folder:
    durable: dict[str, File | Folder] = field(default_factory=dict)
    current: dict[str, File | Folder] = field(default_factory=dict)
    pending: list[tuple[str | None, str | None, File | Folder]] = field(default_factory=list)

    def change(self, old: str | None, new: str | None, node: File | Folder) -> None:
        """`node` deja de llamarse `old` y pasa a llamarse `new` (None: no tenía nombre, o se queda sin él)."""
        self.pending.append((old, new, node))
        _apply(self.current, old, new, node)

    def sync(self) -> None:
        self.durable = dict(self.current)
        self.pending.clear()

    def states(self) -> set[Tree]:
        found: set[Tree] = set()
        for taken in itertools.product((False, True), repeat=len(self.pending)):
            names = dict(self.durable)
            for change in itertools.compress(self.pending, taken):
                _apply(names, *change)
            for contents in itertools.product(*(node.states() for node in names.values())):
                found.add(tuple(sorted(zip(names, contents, strict=True))))
        return found


def crash_states(log: Iterable[tuple[object, ...]], root: Path) -> Iterator[tuple[list[tuple[object, ...]], set[Tree]]]:
    """Para un corte antes de la primera operación y tras cada una: lo prometido hasta ahí y los discos posibles."""
    top, notes = Folder(), []
    yield notes, top.states()
    for verb, where, *details in log:
        if isinstance(where, Path):
            _replay(top, root, str(verb), where, details)
        else:
            notes.append((verb, where))
        yield notes, top.states()


def materialise(tree: Tree, folder: Path) -> None:
    """Pone en `folder` un disco de los posibles."""
    folder.mkdir()
    for name, content in tree:
        if isinstance(content, bytes):
            (folder / name).write_bytes(content)
        else:
            materialise(content, folder / name)


def _replay(top: Folder, root: Path, verb: str, path: Path, details: list[object]) -> None:
    folder = _find(top, path if verb == "fsync_dir" else path.parent, root)
    name = path.name
    node = folder.current.get(name)
    match verb, details, node:
        case "mkdir", [], None:
            folder.change(None, name, Folder())
        case "create" | "append", [], None:
            folder.change(None, name, File())
        case "append", [], File():
            pass
        case "write", [bytes(data)], File():
            node.current += data
        case "truncate", [int(size)], File():
            node.current = node.current[:size]
        case "fsync", [], File():
            node.durable = node.current
        case "rename", [Path() as target], File() | Folder() if target.parent == path.parent:
            folder.change(name, target.name, node)
        case "unlink" | "rmdir", [], File() | Folder():
            folder.change(name, None, node)
        case "fsync_dir", [], _:
            folder.sync()
        case _:
            raise AssertionError(f"el modelo no entiende {verb} {path} {details}")


def _find(top: Folder, path: Path, root: Path) -> Folder:
    folder = top
    for part in path.relative_to(root).parts:
        child = folder.current[part]
        assert isinstance(child, Folder)
        folder = child
    return folder


def _apply(names: dict[str, File | Folder], old: str | None, new: str | None, node: File | Folder) -> None:
    if old is not None:
        names.pop(old, None)
    if new is not None:
        names[new] = node
