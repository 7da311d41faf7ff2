"""JSON canónico: cada valor tiene una sola escritura, así que dos lecturas iguales son los mismos bytes."""

import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NoReturn, TypeAlias

from enlace.durable.plain import plain_status
from enlace.durable.space import reading
from enlace.errors import CorruptDataError

# Bastante para un manifiesto de sesenta mil ficheros; leer 8 MB de corchetes cuesta 2 s y 250 MB de memoria.
MAX_BYTES = 8 << 20
# Los que caben en un float: multiplicar o escribir unos cuantos así no desborda nada.
_MAX_DIGITS = 300
Json: TypeAlias = bool | int | float | str | Sequence["Json"] | Mapping[str, "Json"] | None


def to_json(value: Json) -> bytes:
    """Escribe `value` en UTF-8, en una línea y con las claves ordenadas.

    ValueError si hay algo que JSON no tiene (NaN, infinitos, medios caracteres).
    """
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, sort_keys=True, separators=(",", ":"))
    return text.encode("utf-8")


def parse_json(data: bytes, where: str) -> Json:
    """Lee JSON estricto. CorruptDataError, en `where`, si no es UTF-8 o repite una clave o no cabe en `to_json`."""
    try:
        text = data.decode("utf-8")
        value: Json = json.loads(
            text, object_pairs_hook=_unique, parse_constant=_refuse, parse_float=_finite, parse_int=integer
        )
        if "\\u" in text:
            to_json(value)  # un \ud800 suelto se deja leer, pero no es texto y no se podría volver a escribir
    except (ValueError, RecursionError) as error:
        raise CorruptDataError(
            "el fichero no es JSON válido",
            where=where,
            why=json_reason(error),
            fix="recupéralo de una copia o bórralo para que se vuelva a crear",
        ) from error
    return value


def read_json(path: Path) -> Json:
    """Lee un fichero JSON entero. NotFoundError si no está, CorruptDataError si no es JSON estricto en UTF-8."""
    return parse_json(read_bounded(path), str(path))


def read_bounded(path: Path) -> bytes:
    """Los bytes de un fichero que puede ser de cualquiera. CorruptDataError si no es normal o pasa de MAX_BYTES."""
    plain_status(path)
    with reading(path), path.open("rb") as file:
        data = file.read(MAX_BYTES + 1)
    if len(data) > MAX_BYTES:
        raise CorruptDataError(
            "el fichero JSON es demasiado grande",
            where=str(path),
            why=f"pasa de {MAX_BYTES} bytes y ENLACE no escribe ninguno así",
            fix="recupéralo de una copia o bórralo para que se vuelva a crear",
        )
    return data


def json_reason(error: ValueError | RecursionError) -> str:
    """Por qué unos bytes no son JSON en UTF-8."""
    match error:
        case json.JSONDecodeError(lineno=1):
            return f"se tuerce en la columna {error.colno}"
        case json.JSONDecodeError():
            return f"la línea {error.lineno} se tuerce en la columna {error.colno}"
        case UnicodeDecodeError():
            return f"el byte {error.start} no es UTF-8"
        case UnicodeEncodeError():
            return "contiene medio carácter (un sustituto UTF-16 suelto)"
        case RecursionError():
            return "tiene demasiados niveles"
    return str(error)


def _unique(pairs: list[tuple[str, Json]]) -> dict[str, Json]:
    result = dict(pairs)
    if len(result) != len(pairs):
        raise ValueError("hay una clave repetida")
    return result


def _refuse(text: str) -> NoReturn:
    raise ValueError(f"{text} no es un número de JSON")


def integer(text: str) -> int:
    """Un entero de JSON. ValueError si no cabe en un float."""
    # Python se niega a convertir miles de cifras, y lo dice en inglés.
    if len(text) > _MAX_DIGITS:
        raise ValueError(f"lleva un número de {len(text)} cifras")
    return int(text)


def _finite(text: str) -> float:
    value = float(text)
    if math.isinf(value):
        _refuse(text)
    return value
