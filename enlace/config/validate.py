"""Contrasta un árbol con el esquema y cuenta cada problema con su fichero, su línea y su clave."""

import difflib
from collections.abc import Collection, Iterator, Sequence
from typing import Any, TypeVar, get_args

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from enlace.config.messages import advice, expectation
from enlace.config.schema.base import BrokenRule
from enlace.config.schema.run import LAYERS
from enlace.config.tree import Node, problem
from enlace.errors import Problem

Location = tuple[str | int, ...]
M = TypeVar("M", bound=BaseModel)


def validate(
    schema: type[M], tree: Node, prefix: Location = (), incomplete: Collection[str] = ()
) -> tuple[M | None, list[Problem]]:
    """Modelo validado, o None y todos los problemas.

    prefix: clave de la que cuelga el árbol. incomplete: claves de primer nivel en las que no se dice qué falta, porque
    ya se ha dicho que su fichero no se pudo leer.
    """
    try:
        return schema.model_validate(tree.plain()), []
    except ValidationError as error:
        details = error.errors(include_url=False)
    known = [detail for detail in details if not _is_consequence(detail, prefix, incomplete)]
    return None, [_problem(schema, tree, detail, prefix) for detail in known]


def suggest(word: str, known: Collection[str], parent: str = "") -> str:
    """«¿Quisiste decir…?» con lo más parecido (bajo `parent`) o, si nada se parece, lo que hay."""
    near = difflib.get_close_matches(word, known, 3)
    if near:
        return _did_you_mean([f"{parent}{name}" for name in near])
    return f"Hay: {', '.join(sorted(known))}." if known else ""


def _did_you_mean(options: Sequence[str]) -> str:
    return f"¿Quisiste decir {' o '.join(f'«{option}»' for option in options)}?"


def keys_of(schema: type[BaseModel], prefix: str = "") -> Iterator[str]:
    """Todas las claves con puntos del esquema, sin entrar en las listas."""
    for name, field in schema.model_fields.items():
        key = f"{prefix}{name}"
        yield key
        inner = _inner(field.annotation)
        if inner is not None and not get_args(field.annotation):
            yield from keys_of(inner, f"{key}.")


def _is_consequence(detail: ErrorDetails, prefix: Location, incomplete: Collection[str]) -> bool:
    return detail["type"] == "missing" and (prefix + detail["loc"])[0] in incomplete


def _problem(schema: type[BaseModel], tree: Node, detail: ErrorDetails, prefix: Location) -> Problem:
    location, kind, context = detail["loc"], detail["type"], detail.get("ctx", {})
    rule = context.get("error")
    if isinstance(rule, BrokenRule):
        return _broken_rule(rule, tree, location, prefix)
    nodes = _nodes_along(tree, location)
    origin, key = nodes[-1].origin, _dotted(prefix + location)
    if kind == "value_error":
        return problem(origin, key, str(rule))
    if kind == "missing":
        return problem(origin, key, "falta este valor obligatorio", _how_to_add(prefix + location))
    if kind == "extra_forbidden":
        return problem(origin, key, "clave desconocida", _nearest_key(schema, location, prefix))
    value = nodes[-1].plain()
    return problem(origin, key, expectation(kind, context, value), advice(kind, value))


def _broken_rule(rule: BrokenRule, tree: Node, location: Location, prefix: Location) -> Problem:
    """Cita la primera clave de la regla y dice de dónde sale cada una de las otras."""
    paths = [location + tuple(key.split(".")) for key in rule.keys]
    origins = [_nodes_along(tree, path)[-1].origin for path in paths]
    others = [f"«{_dotted(prefix + path)}» sale de {origin}" for path, origin in zip(paths, origins, strict=True)][1:]
    hint = f"{'; '.join(others)}." if others else ""
    return problem(origins[0], _dotted(prefix + paths[0]), str(rule), hint)


def _nodes_along(tree: Node, location: Sequence[str | int]) -> list[Node]:
    """Los nodos del camino, desde la raíz hasta donde exista."""
    nodes = [tree]
    for part in location:
        child = nodes[-1].child(part)
        if child is None:
            break
        nodes.append(child)
    return nodes


def _how_to_add(location: Location) -> str:
    is_layer = len(location) == 1 and location[0] in LAYERS
    return f"Elige una capa: «{location[0]}: nombre» dentro de «include:»." if is_layer else ""


def _nearest_key(schema: type[BaseModel], location: Location, prefix: Location) -> str:
    """La clave hermana más parecida o, si no hay, la misma palabra en otro grupo."""
    *parents, word = map(str, location)
    group = _group_at(schema, location[:-1])
    siblings = list(group.model_fields) if group else []
    elsewhere = [_dotted((*prefix, key)) for key in keys_of(schema) if key.split(".")[-1] == word.split(".")[-1]]
    if elsewhere and not difflib.get_close_matches(word, siblings):
        return _did_you_mean(elsewhere)
    return suggest(word, siblings, "".join(f"{part}." for part in (*prefix, *parents)))


def _group_at(schema: type[BaseModel], location: Location) -> type[BaseModel] | None:
    group: type[BaseModel] | None = schema
    for part in location:
        if isinstance(part, int):
            continue
        field = group.model_fields.get(part) if group else None
        group = _inner(field.annotation) if field else None
    return group


def _inner(annotation: Any) -> type[BaseModel] | None:
    """El modelo de un campo: él mismo, o el de los elementos si es una lista."""
    for candidate in (annotation, *get_args(annotation)):
        if isinstance(candidate, type) and issubclass(candidate, BaseModel):
            return candidate
    return None


def _dotted(location: Location) -> str:
    return ".".join(map(str, location))
