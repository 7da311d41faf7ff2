"""La cabecera de un safetensors ajeno, mirada antes de dársela a la biblioteca.

La biblioteca comprueba huecos y solapes, pero admite cabeceras de 100 MB (medio minuto de lectura), claves repetidas,
formas que torch no sabe tener y tipos que ENLACE no escribe, y no dice qué es un fichero con el nombre cambiado.
"""

import math
import re
from pathlib import Path
from typing import Any

from enlace.durable.canonical import parse_json
from enlace.durable.space import reading
from enlace.errors import CorruptDataError

# Unos 40 000 tensores.
MAX_HEADER_BYTES = 4 << 20
_MAX_DIMENSIONS = 8
_MAX_ELEMENTS = 1 << 63
_BYTES = {
    **dict.fromkeys(("BOOL", "U8", "I8"), 1),
    **dict.fromkeys(("U16", "I16", "F16", "BF16"), 2),
    **dict.fromkeys(("U32", "I32", "F32"), 4),
    **dict.fromkeys(("U64", "I64", "F64"), 8),
}
_FIELDS = {"dtype", "shape", "data_offsets"}
# Cómo empieza lo que suele llegar con el nombre cambiado. Una longitud de verdad acaba en ceros: no se confunde.
_DISGUISES = (
    (rb"PK\x03\x04", "es un zip, como los .pt y .bin de torch.save, que pueden llevar código"),
    (rb"\x80[\x02-\x05].[^\0]", "es un pickle, que puede llevar código"),
    (rb"\x93NUMPY", "es un array de NumPy (.npy)"),
    (rb"GGUF", "es un modelo GGUF"),
    (rb"\x89HDF", "es un fichero HDF5 (.h5)"),
    (rb"\x1f\x8b|\x28\xb5\x2f\xfd", "está comprimido (gzip o zstd)"),
    (rb"version ", "es un puntero de Git LFS: el fichero de verdad no se ha descargado"),
    (rb"[\s!-~]{8}", "es texto: JSON o una página web"),
)


def check_header(path: Path) -> None:
    """CorruptDataError si el fichero no es un safetensors cuya cabecera describe justo los bytes que tiene.

    Solo lee la cabecera, hasta MAX_HEADER_BYTES.
    """
    with reading(path), path.open("rb") as file:
        start = file.read(8)
        length = int.from_bytes(start, "little")
        room = path.stat().st_size - len(start)
        text = file.read(min(length, MAX_HEADER_BYTES))
    if len(start) < 8:
        raise not_safetensors(path, f"solo mide {len(start)} bytes")
    if length > min(room, MAX_HEADER_BYTES):
        most = f"caben {room}" if room < MAX_HEADER_BYTES else f"se admiten {MAX_HEADER_BYTES}"
        raise not_safetensors(path, _disguise(start) or f"dice que su cabecera mide {length} bytes y {most}")
    try:
        _check_entries(parse_json(text, str(path)), room - length)
    except CorruptDataError as error:
        raise not_safetensors(path, f"su cabecera no es JSON: {error.why}") from error
    except ValueError as error:
        raise not_safetensors(path, str(error)) from error


def not_safetensors(path: Path, why: str) -> CorruptDataError:
    """El error de un fichero de tensores que no lo es."""
    return CorruptDataError(
        "no es un fichero safetensors válido",
        where=str(path),
        why=why,
        fix="ENLACE solo lee pesos en safetensors: vuelve a descargarlos o a copiarlos en ese formato",
    )


def _disguise(start: bytes) -> str:
    return next((name for pattern, name in _DISGUISES if re.match(pattern, start, re.DOTALL)), "")


def _check_entries(header: Any, n_bytes: int) -> None:
    """ValueError si los tensores no cubren los `n_bytes` de datos, uno detrás de otro y sin huecos."""
    if not isinstance(header, dict):
        raise ValueError("su cabecera no es un objeto")
    metadata = header.get("__metadata__", {})
    if not isinstance(metadata, dict) or not all(isinstance(text, str) for text in metadata.values()):
        raise ValueError("sus metadatos no son textos con nombre")
    spans = [_span(name, entry) for name, entry in header.items() if name != "__metadata__"]
    end = 0
    for begin, stop, name in sorted(spans):
        if begin != end:
            raise ValueError(f"«{name}» empieza en el byte {begin} y lo anterior acaba en el {end}")
        end = stop
    if end != n_bytes:
        raise ValueError(f"sus tensores ocupan {end} bytes y el fichero tiene {n_bytes}")


def _span(name: str, entry: Any) -> tuple[int, int, str]:
    """Dónde empieza y acaba un tensor; ValueError si no es lo que su forma y su tipo dicen."""
    if not isinstance(entry, dict) or entry.keys() != _FIELDS:
        raise ValueError(f"«{name}» no tiene los campos {', '.join(sorted(_FIELDS))}")
    dtype, shape, offsets = entry["dtype"], entry["shape"], entry["data_offsets"]
    if not isinstance(dtype, str) or dtype not in _BYTES:
        raise ValueError(f"«{name}» es de un tipo que ENLACE no lee: {dtype}")
    if not _is_naturals(shape) or len(shape) > _MAX_DIMENSIONS or math.prod(max(n, 1) for n in shape) >= _MAX_ELEMENTS:
        raise ValueError(f"«{name}» tiene una forma imposible")
    if not _is_naturals(offsets) or len(offsets) != 2:
        raise ValueError(f"«{name}» no dice dónde empieza y dónde acaba")
    size = math.prod(shape) * _BYTES[dtype]
    if offsets[1] - offsets[0] != size:
        raise ValueError(f"«{name}» ocupa {offsets[1] - offsets[0]} bytes y su forma y su tipo piden {size}")
    return offsets[0], offsets[1], name


def _is_naturals(value: Any) -> bool:
    return isinstance(value, list) and all(type(number) is int and number >= 0 for number in value)
