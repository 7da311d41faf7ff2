"""Los errores de validación de pydantic, en español: qué se esperaba y qué hay."""

import math
import re
from collections.abc import Mapping
from typing import Any

from enlace.config.tree import printable
from enlace.config.yaml12 import scalar

# Todos los tipos de error que el esquema puede dar; una prueba comprueba que no falta ninguno.
_EXPECTED = {
    "bool_type": "se esperaba true o false",
    "finite_number": "se esperaba un número finito",
    "float_type": "se esperaba un número",
    "greater_than": "tiene que ser mayor que {gt}",
    "greater_than_equal": "tiene que ser {ge} o más",
    "int_type": "se esperaba un número entero",
    "less_than": "tiene que ser menor que {lt}",
    "less_than_equal": "tiene que ser {le} o menos",
    "list_type": "se esperaba una lista",
    "literal_error": "tiene que ser {expected}",
    "model_type": "se esperaba un grupo de claves",
    "string_pattern_mismatch": "solo puede llevar letras minúsculas sin acento, cifras, «-» y «_»",
    "string_too_short": "no puede estar vacío",
    "string_type": "se esperaba un texto",
    "too_short": "la lista tiene que tener al menos {min_length}",
}


def expectation(kind: str, context: Mapping[str, Any], value: object) -> str:
    """Frase «qué se esperaba y qué hay» de un error de pydantic."""
    named = {name: _limit(limit) for name, limit in context.items()}
    if kind not in _EXPECTED:
        return f"este valor no es válido ({kind}): hay {describe(value)}"
    return f"{_EXPECTED[kind].format(**named)} y hay {describe(value)}"


def advice(kind: str, value: object) -> str:
    """Pista para los tropiezos corrientes con YAML; vacía si no hay ninguna."""
    if kind in ("int_type", "float_type") and isinstance(value, str):
        return "Quita las comillas." if _is_number(value) else ""
    if kind == "int_type" and isinstance(value, float) and value.is_integer():
        return f"Escribe {int(value)}, sin decimales ni exponente." if abs(value) < 2**63 else ""
    if kind == "bool_type" and isinstance(value, str) and value.lower() in ("sí", "si", "yes", "on", "no", "off"):
        return "En YAML 1.2 solo valen true y false."
    if kind == "string_type" and not isinstance(value, (list, dict)):
        return "Ponlo entre comillas." if value is not None else "Un texto vacío se escribe ''."
    return ""


def describe(value: object) -> str:
    """Un valor tal como lo reconocería quien lo escribió."""
    if isinstance(value, dict):
        return "un grupo de claves"
    if isinstance(value, list):
        return "una lista" if value else "una lista vacía"
    if isinstance(value, str):
        return f"el texto «{printable(value, 60)}»" if value else "un texto vacío"
    return literal(value)


def literal(value: object) -> str:
    """Un escalar como se escribe en YAML."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float) and not math.isfinite(value):
        return ".nan" if math.isnan(value) else ".inf" if value > 0 else "-.inf"
    return str(value)


def _limit(limit: object) -> str:
    """Límite o lista de opciones de pydantic: 0.0 se escribe 0, y 'a', 'b' or 'c' pasa a a, b o c."""
    if isinstance(limit, float) and limit.is_integer():
        return str(int(limit))
    return re.sub(r"'([^']*)'", r"\1", str(limit)).replace(" or ", " o ")


def _is_number(text: str) -> bool:
    try:
        return isinstance(scalar(text), (int, float))
    except ValueError:
        return False
