"""Tensores en formato safetensors: se escriben a trozos, sin una segunda copia, y se cargan sin tolerar diferencias.

Un fichero es: longitud de la cabecera (uint64, little-endian) · cabecera JSON · datos contiguos, sin huecos.
"""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import Tensor, nn

from enlace.durable import Buffer, Json, to_json
from enlace.errors import CorruptDataError, NotFoundError
from enlace.model.header import check_header, not_safetensors

_KINDS = {"float": "F", "bfloat": "BF", "int": "I", "uint": "U", "bool": "BOOL"}
_ALIGNMENT = 8
_MOST_SHOWN = 10


def tensor_chunks(tensors: Mapping[str, Tensor], metadata: Mapping[str, str] = {"format": "pt"}) -> Iterator[Buffer]:
    """Los bytes de un fichero safetensors: la cabecera y después cada tensor, visto en su propia memoria.

    Lo que esté en otro dispositivo o no sea contiguo se copia de uno en uno. `format` es lo que exige transformers.
    """
    # Los tipos anchos van primero para que cada tensor empiece alineado.
    ordered = sorted(tensors.items(), key=lambda item: (-item[1].element_size(), item[0]))
    yield _header(ordered, metadata)
    for _, tensor in ordered:
        flat = tensor.detach().to("cpu").contiguous().reshape(-1)
        yield flat.view(torch.uint8).numpy().data


def read_tensors(path: Path) -> dict[str, Tensor]:
    """Los tensores de un fichero safetensors, en CPU.

    El fichero puede venir de cualquiera. NotFoundError si no existe; CorruptDataError, con lo que es o lo que miente,
    si no es un safetensors entero y con sentido.
    """
    if not path.is_file():
        raise NotFoundError("no existe el fichero de tensores", where=str(path))
    check_header(path)
    try:
        return load_file(path)
    except SafetensorError as error:
        raise not_safetensors(path, str(error)) from error


def load_weights(module: nn.Module, tensors: Mapping[str, Tensor], *, where: str) -> None:
    """Copia los tensores en el módulo, que debe tener exactamente esos nombres y formas (ver `require_match`)."""
    require_match(module.state_dict(), tensors, where=where)
    module.load_state_dict(dict(tensors))


def require_match(expected: Mapping[str, Tensor], tensors: Mapping[str, Tensor], *, where: str) -> None:
    """CorruptDataError, con lo que difiere, si no tienen los mismos nombres y formas, y tipos que quepan en los suyos.

    Una carga parcial dejaría pesos al azar sin que se note; un tipo más ancho o entero, pesos cambiados en silencio.
    """
    problems = [f"falta {name}" for name in sorted(expected.keys() - tensors.keys())]
    problems += [f"sobra {name}" for name in sorted(tensors.keys() - expected.keys())]
    problems += [
        f"{name} tiene forma {list(tensors[name].shape)} y se esperaba {list(expected[name].shape)}"
        for name in sorted(expected.keys() & tensors.keys())
        if tensors[name].shape != expected[name].shape
    ]
    problems += [
        f"{name} es {_short(tensors[name].dtype)} y se esperaba {_short(expected[name].dtype)}"
        for name in sorted(expected.keys() & tensors.keys())
        if not _is_exact(tensors[name].dtype, expected[name].dtype)
    ]
    if problems:
        rest = len(problems) - _MOST_SHOWN
        raise CorruptDataError(
            "los pesos no son de este modelo",
            where=where,
            why="\n".join(problems[:_MOST_SHOWN] + ([f"… y {rest} diferencias más"] if rest > 0 else [])),
            fix="usa los pesos y la configuración de la misma corrida",
        )


def _header(ordered: list[tuple[str, Tensor]], metadata: Mapping[str, str]) -> bytes:
    entries: dict[str, Json] = {"__metadata__": dict(metadata)} if metadata else {}
    end = 0
    for name, tensor in ordered:
        begin, end = end, end + tensor.nbytes
        entries[name] = {"dtype": _dtype_code(tensor.dtype), "shape": list(tensor.shape), "data_offsets": [begin, end]}
    text = to_json(entries)
    text += b" " * (-len(text) % _ALIGNMENT)
    return len(text).to_bytes(8, "little") + text


def _dtype_code(dtype: torch.dtype) -> str:
    """torch.float32 → «F32», torch.uint8 → «U8»…"""
    match = re.fullmatch(r"([a-z]+)(\d*)", _short(dtype))
    if match is None or match[1] not in _KINDS:
        raise TypeError(f"safetensors: tipo sin código conocido: {dtype}")
    return _KINDS[match[1]] + match[2]


def _short(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")


def _is_exact(dtype: torch.dtype, target: torch.dtype) -> bool:
    """Si copiar de uno a otro no cambia ningún valor que un peso pueda tener."""
    both_real = dtype.is_floating_point and target.is_floating_point
    return dtype == target or (both_real and dtype.itemsize < target.itemsize)
