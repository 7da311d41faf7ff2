"""Superpone capas: corrida base → capas → secciones de la corrida → línea de órdenes; lo último gana."""

import re
from collections.abc import Collection, Sequence
from pathlib import Path

from enlace.config.messages import describe
from enlace.config.schema import LAYERS, Run
from enlace.config.tree import Node, Origin, merge, nest, printable, problem
from enlace.config.validate import suggest
from enlace.config.yaml12 import MAX_DEPTH, is_file, read_file, read_value
from enlace.errors import Problem

RUNS = "runs"
INCLUDE = "include"
BASE = "run"
INCLUDE_NAME = r"[a-z0-9][a-z0-9_-]{0,79}"
_OVERRIDE = re.compile(r"([A-Za-z0-9_-]+(?:\.[A-Za-z0-9_-]+)*)=(.*)", re.DOTALL)


class Composer:
    """Compone árboles y apunta los problemas sin pararse en el primero.

    incomplete: claves de primer nivel a las que les falta un fichero ilegible; de ellas no se sabe qué más falta.
    """

    def __init__(self) -> None:
        self.problems: list[Problem] = []
        self.incomplete: set[str] = set()

    def run(self, path: Path, overrides: Sequence[str]) -> Node:
        """Árbol de una corrida; sus capas se buscan junto a su carpeta `runs` o, si no está en una, en `configs/`."""
        folder = path.parent if path.parent.name == RUNS else Path("configs") / RUNS
        command = self.command(overrides)
        files = self._chain(path, folder, (), Run.model_fields)
        # Sin nombre explícito vale el del fichero; el de una corrida base no se hereda.
        tree = Node({"name": Node(path.stem, Origin(str(path)))}, Origin(str(path), 1))
        for file in files:
            tree = self._add_layers(tree, file.child(INCLUDE), folder.parent, (*LAYERS, BASE))
            tree = merge(tree, _without(file, INCLUDE) if file is files[-1] else _without(file, INCLUDE, "name"))
        # Lo último gana también aquí: una capa pedida en la línea de órdenes tapa las secciones del fichero.
        tree = self._add_layers(tree, command.child(INCLUDE), folder.parent, tuple(LAYERS))
        return merge(tree, _without(command, INCLUDE))

    def layer(self, layer: str, path: Path) -> Node:
        """Árbol de un fichero de capa, con los de sus bases debajo."""
        base, *others = self._chain(path, path.parent, (layer,), {layer}) or [Node({}, Origin(str(path), 1))]
        tree = _without(base, INCLUDE)
        for file in others:
            tree = merge(tree, _without(file, INCLUDE))
        return tree

    def _chain(self, path: Path, folder: Path, prefix: tuple[str, ...], affected: Collection[str]) -> list[Node]:
        """El fichero y sus bases, de la más lejana al propio."""
        files: list[Node] = []
        visited: list[Path] = []
        following: Path | None = path
        while following is not None:
            visited.append(following)
            file, problems = read_file(following, prefix)
            self.problems += problems
            if file is None:
                self.incomplete.update(affected)
                break
            files.insert(0, file)
            following = self._base(file, folder, prefix, affected, visited)
        return files

    def _base(
        self, file: Node, folder: Path, prefix: tuple[str, ...], affected: Collection[str], visited: list[Path]
    ) -> Path | None:
        """El fichero que otro nombra como base: con `include` en una capa, con `include.run` en una corrida."""
        include = file.child(INCLUDE)
        name = include if prefix else include and include.child(BASE)
        if name is None:
            return None
        key = f"{prefix[0]}.{INCLUDE}" if prefix else f"{INCLUDE}.{BASE}"
        path = self._included(name, key, folder, affected)
        if path in visited:
            chain = " → ".join(str(link) for link in [*visited, path])
            self._note(name, key, f"los ficheros se incluyen en círculo: {printable(chain, 1000)}")
            self.incomplete.update(affected)
            return None
        return path

    def _add_layers(self, tree: Node, include: Node | None, configs: Path, allowed: tuple[str, ...]) -> Node:
        """Pone encima las capas que nombra `include`, que solo puede llevar las claves `allowed`."""
        if include is None:
            return tree
        if not isinstance(include.value, dict):
            self._note(include, INCLUDE, f"se esperaba un nombre por capa y hay {describe(include.plain())}")
            return tree
        for layer, name in include.value.items():
            if layer in LAYERS:
                path = self._included(name, f"{INCLUDE}.{layer}", configs / layer, {layer})
                tree = merge(tree, nest([layer], self.layer(layer, path))) if path else tree
            elif layer not in allowed:
                near = suggest(layer, allowed)
                self._note(name, f"{INCLUDE}.{layer}", "no hay ninguna capa con ese nombre", near)
        return tree

    def _included(self, name: Node, key: str, folder: Path, affected: Collection[str]) -> Path | None:
        """Ruta del fichero nombrado, si el nombre está bien escrito y el fichero existe."""
        if not (isinstance(name.value, str) and re.fullmatch(INCLUDE_NAME, name.value)):
            found = describe(name.plain())
            self._note(name, key, f"se esperaba el nombre de un fichero (a-z, 0-9, «-» y «_», sin .yaml) y hay {found}")
        elif not is_file(path := folder / f"{name.value}.yaml"):
            near = suggest(name.value, [file.stem for file in folder.glob("*.yaml")])
            self._note(name, key, f"no existe {printable(str(path))}", near)
        else:
            return path
        self.incomplete.update(affected)
        return None

    def command(self, overrides: Sequence[str]) -> Node:
        """Los argumentos `clave=valor`, como un solo árbol."""
        tree = Node({}, Origin("línea de órdenes"))
        for text in overrides:
            source = Origin(f"línea de órdenes «{printable(text, 80)}»")
            match = _OVERRIDE.fullmatch(text)
            keys = match[1].split(".") if match else []
            if match is None or len(keys) > MAX_DEPTH:
                self.problems.append(problem(source, "", "se esperaba clave=valor, por ejemplo train.seed=99"))
                continue
            value, problems = read_value(match[2], source.source, tuple(keys))
            self.problems += problems
            if not problems:
                tree = merge(tree, nest(keys, value or Node(None, source)))
        return tree

    def _note(self, node: Node, key: str, message: str, hint: str = "") -> None:
        self.problems.append(problem(node.origin, key, message, hint))


def _without(node: Node, *keys: str) -> Node:
    children = node.value if isinstance(node.value, dict) else {}
    return Node({key: child for key, child in children.items() if key not in keys}, node.origin)
