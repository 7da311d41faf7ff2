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

_KINDS = {"float": "F", "bfloat": "BF", "int": "I", "uint": "U", "bool": "BOOL"}
_ALIGNMENT = 8


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
    """Los tensores de un fichero safetensors, en CPU. NotFoundError si no existe; CorruptDataError si no lo es."""
    if not path.is_file():
        raise NotFoundError("no existe el fichero de tensores", where=str(path))
    try:
        return load_file(path)
    except SafetensorError as error:
        raise CorruptDataError("no es un fichero safetensors válido", where=str(path), why=str(error)) from error


def load_weights(module: nn.Module, tensors: Mapping[str, Tensor], *, where: str) -> None:
    """Copia los tensores en el módulo, que debe tener exactamente esos nombres y formas.

    CorruptDataError con todo lo que difiere: una carga parcial dejaría pesos al azar sin que se note.
    """
    expected = module.state_dict()
    problems = [f"falta {name}" for name in sorted(expected.keys() - tensors.keys())]
    problems += [f"sobra {name}" for name in sorted(tensors.keys() - expected.keys())]
    problems += [
        f"{name} tiene forma {list(tensors[name].shape)} y se esperaba {list(expected[name].shape)}"
        for name in sorted(expected.keys() & tensors.keys())
        if tensors[name].shape != expected[name].shape
    ]
    if problems:
        raise CorruptDataError(
            "los pesos no son de este modelo",
            where=where,
            why="\n".join(problems),
            fix="usa los pesos y la configuración de la misma corrida",
        )
    module.load_state_dict(dict(tensors))


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
    match = re.fullmatch(r"torch\.([a-z]+)(\d*)", str(dtype))
    if match is None or match[1] not in _KINDS:
        raise TypeError(f"safetensors: tipo sin código conocido: {dtype}")
    return _KINDS[match[1]] + match[2]
