"""La carpeta de un modelo: lo que se cambie en ella se detecta y se nombra."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import torch

from enlace.durable import Content, publish
from enlace.errors import CorruptDataError, NotFoundError
from enlace.model.directory import KIND, load_model, model_files
from enlace.tokenizer import ByteTokenizer
from tests.model.shapes import random_model, shape

TOKENIZER = ByteTokenizer()
CONFIG = shape(vocab_size=TOKENIZER.vocab_size)


def files() -> dict[str, Content]:
    return model_files(random_model(CONFIG), TOKENIZER.files(), {"eos_token_id": TOKENIZER.end_of_text}, card="ficha ñ")


def published(path: Path, contents: Mapping[str, Content]) -> Path:
    publish(path, contents, kind=KIND)
    return path


def test_directory_has_exactly_what_transformers_and_a_reader_need(tmp_path: Path) -> None:
    path = published(tmp_path / "m", files())
    assert {place.name for place in path.iterdir()} == {
        "config.json",
        "generation_config.json",
        "model.safetensors",
        "tokenizer.json",
        "tokenizer_config.json",
        "README.md",
        "manifest.json",
    }
    assert (path / "README.md").read_text(encoding="utf-8") == "ficha ñ"


def test_round_trip_keeps_the_weights_to_the_bit(tmp_path: Path) -> None:
    loaded, _ = load_model(published(tmp_path / "m", files()))
    for a, b in zip(random_model(CONFIG).parameters(), loaded.parameters(), strict=True):
        assert torch.equal(a, b)


@pytest.mark.parametrize("name", ["model.safetensors", "config.json", "tokenizer.json", "manifest.json"])
def test_a_flipped_bit_in_any_file_is_detected_and_named(name: str, tmp_path: Path) -> None:
    path = published(tmp_path / "m", files())
    data = bytearray((path / name).read_bytes())
    data[len(data) // 2] ^= 1
    (path / name).write_bytes(data)
    with pytest.raises(CorruptDataError) as caught:
        load_model(path)
    assert name in caught.value.where


def test_a_missing_directory_is_not_found(tmp_path: Path) -> None:
    with pytest.raises(NotFoundError):
        load_model(tmp_path / "no")


def test_weights_of_another_shape_are_refused_even_with_a_good_manifest(tmp_path: Path) -> None:
    contents = files()
    document = json.loads(bytes(contents["config.json"]))  # type: ignore[arg-type]
    contents["config.json"] = json.dumps(document | {"num_hidden_layers": 3}).encode()
    with pytest.raises(CorruptDataError, match=r"no son de este modelo") as caught:
        load_model(published(tmp_path / "m", contents))
    assert "falta model.layers.2.input_layernorm.weight" in caught.value.why


@pytest.mark.parametrize("change", [{"hidden_size": "24"}, {"hidden_size": None}, {"head_dim": 7}])
def test_a_config_that_is_not_a_model_is_refused(change: dict[str, Any], tmp_path: Path) -> None:
    contents = files()
    document = json.loads(bytes(contents["config.json"]))  # type: ignore[arg-type]
    contents["config.json"] = json.dumps(document | change).encode()
    with pytest.raises(CorruptDataError) as caught:
        load_model(published(tmp_path / "m", contents))
    assert caught.value.where.endswith("config.json")
