"""El JSON que contesta un servicio: un objeto, o nada."""

import json
from typing import Any


def read_object(text: str) -> dict[str, Any] | None:
    """El objeto que hay en ese texto; None si no es JSON, no es un objeto o anida sin fin."""
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def objects(value: object) -> list[dict[str, Any]]:
    """Los objetos de una lista; lo demás se ignora."""
    return [each for each in value if isinstance(each, dict)] if isinstance(value, list) else []


def text_of(value: object) -> str:
    """Un texto; lo que no lo es, vacío."""
    return value.encode("utf-8", "replace").decode() if isinstance(value, str) else ""
