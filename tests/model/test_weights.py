"""safetensors a trozos: lo lee la biblioteca oficial bit a bit, y nada se carga a medias."""

import json
import tempfile
from pathlib import Path

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors.torch import load_file
from torch import Tensor

from enlace.durable import write_file
from enlace.errors import CorruptDataError, NotFoundError
from enlace.model import Transformer
from enlace.model.weights import load_weights, read_tensors, tensor_chunks
from tests.model.shapes import random_model, shape

DTYPES = [
    torch.float32,
    torch.float16,
    torch.bfloat16,
    torch.float64,
    torch.uint8,
    torch.int8,
    torch.int16,
    torch.uint16,
    torch.int32,
    torch.int64,
    torch.bool,
]


def tensor_of_bytes(shape: list[int], dtype: torch.dtype, seed: int) -> Tensor:
    """Bits al azar, con sus NaN, vistos como `dtype`."""
    elements = torch.Size(shape).numel()
    width = torch.empty(0, dtype=dtype).element_size()
    top = 2 if dtype == torch.bool else 256
    bits = torch.randint(top, (elements * width,), dtype=torch.uint8, generator=torch.Generator().manual_seed(seed))
    return bits.view(dtype).reshape(shape)


def same_bits(a: Tensor, b: Tensor) -> bool:
    return a.dtype == b.dtype and a.shape == b.shape and bits(a) == bits(b)


def bits(tensor: Tensor) -> bytes:
    return bytes(tensor.contiguous().reshape(-1).view(torch.uint8).tolist())


tensors = st.builds(
    tensor_of_bytes, st.lists(st.integers(0, 4), max_size=4), st.sampled_from(DTYPES), st.integers(0, 2**31)
)
# Sin medios caracteres (no son texto) ni el nombre que el formato reserva.
names = st.text(st.characters(exclude_categories=["Cs"]), max_size=12).filter(lambda name: name != "__metadata__")


@settings(deadline=None)
@given(st.dictionaries(names, tensors, max_size=6), st.dictionaries(names, names, max_size=2))
def test_official_library_reads_every_bit(contents: dict[str, Tensor], metadata: dict[str, str]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "t.safetensors"
        write_file(path, tensor_chunks(contents, metadata))
        for loaded in (load_file(path), read_tensors(path)):
            assert loaded.keys() == contents.keys()
            assert all(same_bits(loaded[name], tensor) for name, tensor in contents.items())


@settings(deadline=None)
@given(st.dictionaries(names, tensors, max_size=6))
def test_every_tensor_starts_aligned(contents: dict[str, Tensor]) -> None:
    data = b"".join(tensor_chunks(contents))
    length = int.from_bytes(data[:8], "little")
    assert (8 + length) % 8 == 0
    header = json.loads(data[8 : 8 + length])
    for name, tensor in contents.items():
        assert header[name]["data_offsets"][0] % tensor.element_size() == 0


def test_tensors_are_viewed_and_not_copied() -> None:
    tensor = torch.zeros(4, 4)
    _header, view = tensor_chunks({"t": tensor})
    tensor[0, 0] = 1.0
    assert memoryview(view)[:4] == bytes.fromhex("0000803f")


def test_strided_and_trainable_tensors_are_written_in_order(tmp_path: Path) -> None:
    base = torch.arange(12.0).reshape(3, 4).requires_grad_()
    write_file(tmp_path / "t.safetensors", tensor_chunks({"t": base.T, "r": base[:, ::2]}))
    loaded = read_tensors(tmp_path / "t.safetensors")
    assert torch.equal(loaded["t"], base.T) and torch.equal(loaded["r"], base[:, ::2])


def test_type_without_a_code_is_refused() -> None:
    with pytest.raises(TypeError, match="complex64"):
        list(tensor_chunks({"t": torch.zeros(2, dtype=torch.complex64)}))


@pytest.mark.parametrize("content", [b"", b"\x00" * 7, b"\xff" * 64, b"\x02" + b"\x00" * 7 + b"{}xx"])
def test_a_file_that_is_not_safetensors_is_corrupt(content: bytes, tmp_path: Path) -> None:
    write_file(tmp_path / "t.safetensors", content)
    with pytest.raises(CorruptDataError) as caught:
        read_tensors(tmp_path / "t.safetensors")
    assert caught.value.where.endswith("t.safetensors") and caught.value.why


def test_a_truncated_file_is_corrupt(tmp_path: Path) -> None:
    data = b"".join(tensor_chunks({"t": torch.ones(100)}))
    write_file(tmp_path / "t.safetensors", data[:-1])
    with pytest.raises(CorruptDataError):
        read_tensors(tmp_path / "t.safetensors")


def test_a_missing_file_is_not_found(tmp_path: Path) -> None:
    with pytest.raises(NotFoundError):
        read_tensors(tmp_path / "no.safetensors")


def test_loading_copies_every_tensor() -> None:
    source, target = random_model(shape(), seed=1), Transformer(shape())
    load_weights(target, source.state_dict(), where="aquí")
    for a, b in zip(source.parameters(), target.parameters(), strict=True):
        assert torch.equal(a, b) and a.data_ptr() != b.data_ptr()


def test_renamed_key_and_wrong_shape_are_named_and_nothing_is_loaded() -> None:
    model = random_model(shape())
    before = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    wrong = {name: torch.zeros_like(tensor) for name, tensor in before.items()}
    wrong["model.norm.peso"] = wrong.pop("model.norm.weight")
    wrong["model.layers.0.mlp.up_proj.weight"] = torch.zeros(3, 4)
    with pytest.raises(CorruptDataError) as caught:
        load_weights(model, wrong, where="modelo/model.safetensors")
    assert caught.value.where == "modelo/model.safetensors"
    assert caught.value.why.splitlines() == [
        "falta model.norm.weight",
        "sobra model.norm.peso",
        "model.layers.0.mlp.up_proj.weight tiene forma [3, 4] y se esperaba [40, 24]",
    ]
    assert all(torch.equal(before[name], tensor) for name, tensor in model.state_dict().items())
