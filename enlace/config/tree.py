"""Árbol de valores en el que cada uno sabe de dónde sale."""

from collections.abc import Iterator
from dataclasses import dataclass

from enlace.errors import Problem

Scalar = str | int | float | bool | None


@dataclass(frozen=True)
class Origin:
    """Fichero y línea, o el argumento de la línea de órdenes."""

    source: str
    line: int | None = None

    def __str__(self) -> str:
        return printable(f"{self.source}:{self.line}" if self.line else self.source)


@dataclass(frozen=True)
class Node:
    """Un valor, una lista o un grupo de claves, y su origen (el de un grupo es su primera aparición)."""

    value: "Scalar | list[Node] | dict[str, Node]"
    origin: Origin

    def plain(self) -> object:
        """El mismo valor en listas y diccionarios corrientes, sin orígenes."""
        if isinstance(self.value, dict):
            return {key: child.plain() for key, child in self.value.items()}
        if isinstance(self.value, list):
            return [child.plain() for child in self.value]
        return self.value

    def child(self, key: str | int) -> "Node | None":
        """El hijo de un grupo o de una lista, si está."""
        if isinstance(self.value, dict):
            return self.value.get(str(key))
        if isinstance(self.value, list) and isinstance(key, int):
            return self.value[key]
        return None

    def leaves(self, prefix: str = "") -> Iterator[tuple[str, "Node"]]:
        """Recorre los valores finales con su clave con puntos; los elementos de una lista llevan su índice."""
        children = _children(self)
        if not children:
            yield prefix, self
        for key, child in children:
            yield from child.leaves(f"{prefix}.{key}" if prefix else key)


def merge(base: Node, top: Node) -> Node:
    """Pone `top` encima: los grupos se funden clave a clave; lo demás (listas incluidas) sustituye."""
    if not (isinstance(base.value, dict) and isinstance(top.value, dict)):
        return top
    merged = dict(base.value)
    for key, child in top.value.items():
        merged[key] = merge(merged[key], child) if key in merged else child
    return Node(merged, base.origin)


def nest(keys: list[str], leaf: Node) -> Node:
    """Envuelve un valor en grupos: `a.b` = 1 es `{a: {b: 1}}`, todo con el mismo origen."""
    for key in reversed(keys):
        leaf = Node({key: leaf}, leaf.origin)
    return leaf


def problem(origin: Origin, key: str, message: str, hint: str = "") -> Problem:
    """Un problema listo para enseñarse: `message` sin punto final, `hint` una frase entera."""
    return Problem(str(origin), printable(key), f"{message}." if hint else message, hint)


def printable(text: str, limit: int = 200) -> str:
    """Texto que cualquier terminal puede escribir: ni sustitutos sueltos, ni controles, ni mil letras."""
    short = text if len(text) <= limit else f"{text[:limit]}…"
    return "".join(char if char.isprintable() else char.encode("unicode_escape").decode() for char in short)


def _children(node: Node) -> list[tuple[str, Node]]:
    if isinstance(node.value, dict):
        return list(node.value.items())
    if isinstance(node.value, list):
        return [(str(index), child) for index, child in enumerate(node.value)]
    return []
