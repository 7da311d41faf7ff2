"""Lector de YAML 1.2: escalares del esquema «core», claves únicas y nada que se ejecute, se repita o se expanda.

PyYAML sigue YAML 1.1 (`22:30` es 1350, `no` es falso, `3e-4` es texto y de dos claves iguales gana la última), así
que de él solo se usa el analizador de eventos: los valores los decide este módulo, y los alias, las anclas y las
etiquetas se rechazan.
"""

import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import NoReturn

import yaml

from enlace.config.syntax import explain_syntax
from enlace.config.tree import Node, Origin, Scalar, problem
from enlace.errors import Problem

# PyYAML lee unos 40 kB por segundo de lo más retorcido; el fichero más largo de los nuestros no llega a 2 kB.
MAX_BYTES = 1 << 16
MAX_DEPTH = 32
INT64 = range(-(1 << 63), 1 << 63)

NULL = re.compile(r"~|null|Null|NULL|")
BOOL = re.compile(r"true|True|TRUE|false|False|FALSE")
INT = re.compile(r"[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+")
FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?|[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)")


def read_file(path: Path, prefix: tuple[str, ...] = ()) -> tuple[Node | None, list[Problem]]:
    """Lee un fichero de configuración; sin árbol si no se entiende o no es un grupo de claves.

    prefix: clave bajo la que va el fichero (su capa), para nombrar bien las claves en los problemas.
    """
    origin = Origin(str(path))
    try:
        # Abrir una tubería esperaría para siempre a quien escriba en ella.
        if path.exists() and not path.is_file() and not path.is_dir():
            return None, [problem(origin, "", "no se puede leer: no es un fichero normal")]
        with path.open("rb") as file:
            content = file.read(MAX_BYTES + 1)
    except (OSError, ValueError) as error:
        # ValueError: un nombre con un carácter NUL.
        return None, [problem(origin, "", f"no se puede leer: {_os_reason(error)}")]
    if len(content) > MAX_BYTES:
        return None, [problem(origin, "", "ocupa más de 64 KiB: no parece un fichero de configuración")]
    text, bad = _decode(content, str(path))
    return (None, [bad]) if bad else _read_group(text, str(path), prefix)


def read_value(text: str, source: str, path: tuple[str, ...]) -> tuple[Node | None, list[Problem]]:
    """Lee el valor que un argumento de la línea de órdenes da a la clave `path`; sin árbol si está vacío."""
    return _Reader(source, path, numbered=False).read(text)


def is_file(path: Path) -> bool:
    """Si hay un fichero ahí; un nombre imposible (demasiado largo, con NUL) es que no."""
    try:
        return path.is_file()
    except (OSError, ValueError):
        return False


def scalar(text: str) -> Scalar:
    """Valor de un escalar sin comillas según el esquema «core» de YAML 1.2 (§10.3.2).

    ValueError: un entero que no cabe en 64 bits.
    """
    if NULL.fullmatch(text):
        return None
    if BOOL.fullmatch(text):
        return text.lower() == "true"
    if INT.fullmatch(text):
        return _integer(text)
    if FLOAT.fullmatch(text):
        return float(text.lower().replace(".inf", "inf").replace(".nan", "nan"))
    return text


def _integer(text: str) -> int:
    # Python se niega a convertir miles de cifras: se mira la longitud antes.
    value = (int(text, 0) if text[:2] in ("0x", "0o") else int(text)) if len(text) <= 64 else INT64.stop
    if value not in INT64:
        raise ValueError("el número entero no cabe en 64 bits")
    return value


def _os_reason(error: OSError | ValueError) -> str:
    if isinstance(error, FileNotFoundError):
        return "no existe"
    if isinstance(error, IsADirectoryError):
        return "es una carpeta"
    if isinstance(error, PermissionError):
        return "no tienes permiso"
    return "el nombre no es válido o el sistema no deja abrirlo"


def _decode(content: bytes, source: str) -> tuple[str, Problem | None]:
    """UTF-8, con o sin la marca BOM que añade el Bloc de notas; cualquier otra codificación se rechaza."""
    try:
        return content.decode("utf-8-sig"), None
    except UnicodeDecodeError as error:
        origin = Origin(source, content[: error.start].count(b"\n") + 1)
        message = f"no está en UTF-8 (byte 0x{content[error.start]:02x})"
        return "", problem(origin, "", message, "Guárdalo como UTF-8 en tu editor.")


def _read_group(text: str, source: str, prefix: tuple[str, ...]) -> tuple[Node | None, list[Problem]]:
    node, problems = _Reader(source, prefix, numbered=True).read(text)
    if problems or (node is not None and isinstance(node.value, dict)):
        return node, problems
    key = ".".join(prefix)
    if node is None or node.value is None:
        return None, [problem(Origin(source, 1), key, "el fichero está vacío: se esperaban líneas «clave: valor»")]
    found = "una lista" if isinstance(node.value, list) else "un valor suelto"
    return None, [problem(node.origin, key, f"se esperaban líneas «clave: valor» y hay {found}")]


def _line(event: yaml.Event) -> int:
    return event.start_mark.line + 1 if event.start_mark else 1


class _Stop(Exception):
    """El resto del texto ya no se puede leer; el problema está apuntado."""


class _Reader:
    """Convierte los eventos de PyYAML en un árbol y apunta los problemas que encuentra por el camino."""

    def __init__(self, source: str, prefix: tuple[str, ...], *, numbered: bool) -> None:
        self._source = source
        self._prefix = prefix
        self._numbered = numbered
        self._problems: list[Problem] = []
        self._events: Iterator[yaml.Event] = iter(())

    def read(self, text: str) -> tuple[Node | None, list[Problem]]:
        """Árbol (None si el texto está vacío o no se entiende) y problemas."""
        node = None
        try:
            self._events = yaml.parse(text, Loader=yaml.SafeLoader)
            node = self._document()
        except (yaml.YAMLError, ValueError, OverflowError) as error:
            # ValueError y OverflowError: escapes como "\UFFFFFFFF", que PyYAML no comprueba.
            line, message = explain_syntax(error, text)
            self._note(line, self._prefix, message)
        except _Stop:
            pass
        return (None if self._problems else node), self._problems

    def _document(self) -> Node | None:
        node = None
        for event in self._events:
            if isinstance(event, yaml.DocumentStartEvent):
                if node is not None:
                    self._stop(event, (), "hay un segundo documento («---»): solo se admite uno por fichero")
                node = self._node(next(self._events), self._prefix)
        return node

    def _node(self, event: yaml.Event, path: tuple[str, ...]) -> Node:
        if isinstance(event, yaml.AliasEvent):
            self._stop(event, path, "los alias de YAML («*nombre») no se admiten: escribe el valor")
        if isinstance(event, yaml.NodeEvent) and event.anchor:
            self._note_at(event, path, "las anclas de YAML («&nombre») no se admiten")
        if getattr(event, "tag", None):
            self._note_at(event, path, "las etiquetas de YAML («!tipo») no se admiten")
        if len(path) > MAX_DEPTH:
            self._stop(event, path, f"hay más de {MAX_DEPTH} niveles anidados")
        if isinstance(event, yaml.MappingStartEvent):
            return Node(self._mapping(path), self._origin(event))
        if isinstance(event, yaml.SequenceStartEvent):
            return Node(self._sequence(path), self._origin(event))
        return Node(self._scalar(event, path), self._origin(event))

    def _mapping(self, path: tuple[str, ...]) -> dict[str, Node]:
        children: dict[str, Node] = {}
        while not isinstance(event := next(self._events), yaml.MappingEndEvent):
            key = self._key(event, path)
            value = replace(self._node(next(self._events), (*path, key)), origin=self._origin(event))
            if key in children:
                before = children[key].origin.line
                where = f": ya estaba en la línea {before}" if before else ""
                self._note_at(event, (*path, key), f"clave repetida{where}")
            children[key] = value
        return children

    def _key(self, event: yaml.Event, path: tuple[str, ...]) -> str:
        if isinstance(event, yaml.ScalarEvent) and not event.tag and not event.anchor:
            return str(event.value)
        self._note_at(event, path, "la clave tiene que ser una palabra")
        self._node(event, (*path, "?"))
        return "?"

    def _sequence(self, path: tuple[str, ...]) -> list[Node]:
        children: list[Node] = []
        while not isinstance(event := next(self._events), yaml.SequenceEndEvent):
            children.append(self._node(event, (*path, str(len(children)))))
        return children

    def _scalar(self, event: yaml.Event, path: tuple[str, ...]) -> Scalar:
        text, quoted = str(getattr(event, "value", "")), bool(getattr(event, "style", None))
        if any("\ud800" <= char <= "\udfff" for char in text):
            self._note_at(event, path, "el texto lleva un escape \\uD800–\\uDFFF, que no es un carácter")
        try:
            return text if quoted else scalar(text)
        except ValueError as error:
            self._note_at(event, path, str(error))
            return None

    def _origin(self, event: yaml.Event) -> Origin:
        return Origin(self._source, _line(event) if self._numbered else None)

    def _note_at(self, event: yaml.Event, path: tuple[str, ...], message: str) -> None:
        self._note(_line(event), path, message)

    def _note(self, line: int, path: tuple[str, ...], message: str) -> None:
        origin = Origin(self._source, line if self._numbered else None)
        self._problems.append(problem(origin, ".".join(path), message))

    def _stop(self, event: yaml.Event, path: tuple[str, ...], message: str) -> NoReturn:
        self._note_at(event, path, message)
        raise _Stop
