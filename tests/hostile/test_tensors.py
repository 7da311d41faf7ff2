"""Pesos de un desconocido: se dice qué son o qué mienten, sin gastar memoria ni tiempo y sin ejecutar nada."""

import io
import json
import os
import pickle
import resource
import time
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from enlace.durable import publish
from enlace.errors import CorruptDataError, EnlaceError
from enlace.model import Transformer
from enlace.model.directory import KIND, load_model
from enlace.model.header import MAX_HEADER_BYTES
from enlace.model.weights import load_weights, read_tensors
from tests.crash.forks import IGNORE_FORK_WARNING, start_child, wait_for
from tests.hostile.targets import good_model
from tests.model.shapes import random_model, shape

SPARE_MEMORY = 256 << 20


def entry(begin: Any = 0, end: Any = 4, shape: Any = (1,), dtype: Any = "F32") -> dict[str, Any]:
    return {"dtype": dtype, "shape": shape, "data_offsets": [begin, end]}


def safetensors(header: object, data: bytes = b"\0" * 4, length: int | None = None) -> bytes:
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return (len(text) if length is None else length).to_bytes(8, "little") + text + data


def torch_file(*, zipped: bool) -> bytes:
    file = io.BytesIO()
    torch.save({"a": torch.ones(3)}, file, _use_new_zipfile_serialization=zipped)
    return file.getvalue()


def npy() -> bytes:
    file = io.BytesIO()
    np.save(file, np.ones(3))
    return file.getvalue()


def zip_file() -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("a", "b")
    return file.getvalue()


TWICE = b'{"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}'
LIES = {
    "no length": (b"\0" * 7, "7 bytes"),
    "length over the file": (safetensors({}, length=1000), "cabecera mide 1000"),
    "length 2^63": (safetensors({}, length=1 << 63), "cabecera mide 9223372036854775808"),
    "length 2^64-1": (safetensors({}, length=(1 << 64) - 1), "cabecera mide 18446744073709551615"),
    "overlap": (safetensors({"a": entry(0, 8, [2]), "b": entry(4, 12, [2])}, b"\0" * 12), "«b» empieza en el byte 4"),
    "same bytes twice": (safetensors({"a": entry(), "b": entry()}), "«b» empieza en el byte 0"),
    "gap": (safetensors({"a": entry(), "b": entry(8, 12)}, b"\0" * 12), "«b» empieza en el byte 8"),
    "size": (safetensors({"a": entry(shape=[100])}), "piden 400"),
    "product overflows": (safetensors({"a": entry(shape=[1 << 32, 1 << 32])}), "forma imposible"),
    "product overflows beside a zero": (safetensors({"a": entry(0, 0, [1 << 63, 0])}, b""), "forma imposible"),
    "dimension of 5000 digits": (safetensors(json.dumps({"a": 1}).replace("1", "9" * 5000).encode()), "5000 cifras"),
    "negative dimension": (safetensors({"a": entry(shape=[-1])}), "forma imposible"),
    "dimension with decimals": (safetensors({"a": entry(shape=[1.0])}), "forma imposible"),
    "boolean dimension": (safetensors({"a": entry(shape=[True])}), "forma imposible"),
    "a thousand dimensions": (safetensors({"a": entry(shape=[1] * 1000)}), "forma imposible"),
    "shape of text": (safetensors({"a": entry(shape="1")}), "forma imposible"),
    "negative offset": (safetensors({"a": entry(-4, 0)}), "dónde empieza"),
    "reversed offsets": (safetensors({"a": entry(4, 0)}), "ocupa -4 bytes"),
    "repeated name": (safetensors(TWICE), "repetida"),
    "unknown type": (safetensors({"a": entry(dtype="Q4")}), "tipo que ENLACE no lee: Q4"),
    "list for a type": (safetensors({"a": entry(dtype=[])}), "tipo que ENLACE no lee"),
    "fields missing": (safetensors({"a": {"dtype": "F32"}}), "campos"),
    "tensor that is a list": (safetensors({"a": []}), "campos"),
    "not UTF-8": (safetensors(b'{"\xff":1}'), "UTF-8"),
    "half a character": (safetensors(b'{"\\ud800":1}'), "medio carácter"),
    "not an object": (safetensors(b"[]"), "no es un objeto"),
    "nested": (safetensors(b'{"a":' * 100_000), "niveles"),
    "metadata of numbers": (safetensors({"__metadata__": {"a": 1}}, b""), ""),
    "metadata that is a list": (safetensors({"__metadata__": []}, b""), ""),
    "trailing bytes": (safetensors({"a": entry()}, b"\0" * 5), "ocupan 4 bytes y el fichero tiene 5"),
    "truncated": (safetensors({"a": entry()}, b"\0" * 3), "ocupan 4 bytes y el fichero tiene 3"),
}
DISGUISES = {
    "torch.save": (torch_file(zipped=True), "es un zip"),
    "old torch.save": (torch_file(zipped=False), "pickle"),
    "zip": (zip_file(), "es un zip"),
    "pickle": (pickle.dumps({"a": [1, 2, 3]}), "pickle"),
    "npy": (npy(), "NumPy"),
    "GGUF": (b"GGUF\3\0\0\0" + b"\0" * 50, "GGUF"),
    "gzip": (b"\x1f\x8b\x08\0\0\0\0\0" + b"\0" * 30, "comprimido"),
    "Git LFS": (b"version https://git-lfs.github.com/spec/v1\noid sha256:aa\nsize 12\n", "Git LFS"),
    "page": (b"<!DOCTYPE html><html></html>", "página web"),
    "JSON": (b'{"a": 1, "b": 2}', "JSON"),
}


@pytest.mark.parametrize(("content", "why"), (LIES | DISGUISES).values(), ids=(LIES | DISGUISES).keys())
def test_what_is_not_safetensors_is_refused_saying_why(content: bytes, why: str, tmp_path: Path) -> None:
    path = tmp_path / "model.safetensors"
    path.write_bytes(content)
    with pytest.raises(CorruptDataError) as caught:
        read_tensors(path)
    error = caught.value
    assert why in error.why and error.where == str(path) and error.why and error.fix


def test_a_pickle_is_never_run(tmp_path: Path) -> None:
    class Trap:
        def __reduce__(self) -> tuple[object, tuple[str]]:
            return os.mkdir, (str(tmp_path / "ejecutado"),)

    path = tmp_path / "model.safetensors"
    for content in (pickle.dumps(Trap()), safetensors(b"{}", pickle.dumps(Trap()))):
        path.write_bytes(content)
        with pytest.raises(CorruptDataError):
            read_tensors(path)
    assert not (tmp_path / "ejecutado").exists()


BOMBS = {
    "nested header": b'{"a":' * 20_000_000,
    "a million tensors": b"{"
    + b",".join(b'"%d":{"dtype":"F32","shape":[0],"data_offsets":[0,0]}' % n for n in range(10**6)),
    "header at the limit": (b'{"a":[' + b"[]," * (MAX_HEADER_BYTES // 3 - 10) + b"1]}"),
    "names at the limit": (
        b"{" + b",".join(b'"%06d":{"dtype":"F32","shape":[0],"data_offsets":[0,0]}' % n for n in range(68_000)) + b"}"
    ),
}


@pytest.mark.filterwarnings(IGNORE_FORK_WARNING)
@pytest.mark.parametrize("name", BOMBS)
def test_a_header_bomb_costs_neither_memory_nor_time(name: str, tmp_path: Path) -> None:
    path = tmp_path / "model.safetensors"
    path.write_bytes(safetensors(BOMBS[name], b""))

    def read() -> None:
        limit_memory()
        try:
            tensors = read_tensors(path)
        except EnlaceError:
            return
        assert len(tensors) == 68_000

    begin = time.process_time()
    before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
    assert wait_for(start_child(read)) == 0
    assert time.process_time() - begin < 1
    assert resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before < 10


def limit_memory() -> None:
    """Al proceso le quedan SPARE_MEMORY bytes más de los que ya tiene."""
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    resource.setrlimit(resource.RLIMIT_AS, (pages * resource.getpagesize() + SPARE_MEMORY,) * 2)


@pytest.mark.filterwarnings(IGNORE_FORK_WARNING)
@pytest.mark.parametrize(
    "change",
    [
        {"hidden_size": 10**9},
        {"num_hidden_layers": 10**9},
        {"head_dim": 10**12},
        {"intermediate_size": 10**300},
        {"max_position_embeddings": 10**10},
        {"num_attention_heads": 10**6, "num_key_value_heads": 10**6},
        {"vocab_size": 65_535, "hidden_size": 10**5},
    ],
    ids=str,
)
def test_a_model_larger_than_its_weights_is_not_built(change: dict[str, Any], tmp_path: Path) -> None:
    files = good_model()
    config = json.dumps(json.loads(files["config.json"]) | change).encode()
    publish(tmp_path / "m", files | {"config.json": config}, kind=KIND)

    def load() -> None:
        limit_memory()
        with pytest.raises(CorruptDataError) as caught:
            load_model(tmp_path / "m")
        assert caught.value.where.endswith("config.json")

    assert wait_for(start_child(load)) == 0


@pytest.mark.parametrize(
    "change",
    [
        {"hidden_size": "64"},
        {"hidden_size": -64},
        {"hidden_size": 64.0},
        {"num_hidden_layers": True},
        {"vocab_size": None},
        {"rope_theta": 0},
        {"tie_word_embeddings": 1},
    ],
    ids=str,
)
def test_a_config_of_wrong_types_names_the_key(change: dict[str, Any], tmp_path: Path) -> None:
    files = good_model()
    config = json.dumps(json.loads(files["config.json"]) | change).encode()
    publish(tmp_path / "m", files | {"config.json": config}, kind=KIND)
    with pytest.raises(CorruptDataError) as caught:
        load_model(tmp_path / "m")
    assert next(iter(change)) in caught.value.why


@pytest.mark.parametrize("text", [b"[]", b"{}", b"3", b'"x"', b"null"])
def test_a_config_that_is_not_even_an_object_is_refused(text: bytes, tmp_path: Path) -> None:
    publish(tmp_path / "m", good_model() | {"config.json": text}, kind=KIND)
    with pytest.raises(CorruptDataError, match=r"config\.json"):
        load_model(tmp_path / "m")


@pytest.mark.parametrize("dtype", [torch.float64, torch.int32, torch.bool, torch.uint8])
def test_weights_of_a_type_that_would_change_them_are_refused(dtype: torch.dtype) -> None:
    weights = {name: tensor.to(dtype) for name, tensor in random_model(shape()).state_dict().items()}
    model = Transformer(shape())
    with pytest.raises(CorruptDataError) as caught:
        load_weights(model, weights, where="aquí")
    assert f"es {str(dtype).removeprefix('torch.')} y se esperaba float32" in caught.value.why


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_weights_are_loaded_exactly(dtype: torch.dtype) -> None:
    weights = {name: tensor.to(dtype) for name, tensor in random_model(shape()).state_dict().items()}
    model = Transformer(shape())
    load_weights(model, weights, where="aquí")
    assert all(torch.equal(tensor, weights[name].float()) for name, tensor in model.state_dict().items())


def test_ten_thousand_differences_are_not_all_listed() -> None:
    with pytest.raises(CorruptDataError) as caught:
        load_weights(Transformer(shape()), {f"sobra-{n}": torch.zeros(1) for n in range(10_000)}, where="aquí")
    assert len(caught.value.why.splitlines()) == 11 and "diferencias más" in caught.value.why
