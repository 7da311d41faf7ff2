"""Shards de un desconocido, con su manifiesto en regla: lo que dice su cabecera se comprueba con sus tokens."""

from pathlib import Path
from typing import Any

import pytest

from enlace.data.shards import open_shard_set
from enlace.durable import publish
from enlace.errors import CorruptDataError
from tests.hostile.targets import good_shards

VOCABULARY = 301
N_TOKENS = slice(24, 32)
MAX_ID = slice(16, 20)


def rejection(path: Path, shard: bytes, info: dict[str, Any] | None = None) -> CorruptDataError:
    files = good_shards() | {"train-00000.bin": shard}
    publish(path, files, kind="shards", info={"text_bytes": {"train": 40}} if info is None else info)
    with pytest.raises(CorruptDataError) as caught:
        open_shard_set("s", path, VOCABULARY)
    return caught.value


def changed(place: slice, content: bytes) -> bytes:
    shard = bytearray(good_shards()["train-00000.bin"])
    shard[place] = content
    return bytes(shard)


@pytest.mark.parametrize("max_id", [0, 299, 301, 2**32 - 1])
def test_a_false_largest_id_is_found(max_id: int, tmp_path: Path) -> None:
    error = rejection(tmp_path / "s", changed(MAX_ID, max_id.to_bytes(4, "little")))
    assert error.where.endswith("train-00000.bin") and f"mayor id es {max_id} " in error.why


def test_an_id_out_of_the_vocabulary_is_found_under_an_innocent_header(tmp_path: Path) -> None:
    # Leer esa fila del embedding sería leer fuera de él.
    error = rejection(tmp_path / "s", changed(slice(128, 130), b"\xff\xff"))
    assert "mayor id es 300 " in error.why


@pytest.mark.parametrize("count", [0, 1, 40, 42, 1 << 63, (1 << 64) - 1])
def test_a_false_number_of_tokens_is_found(count: int, tmp_path: Path) -> None:
    assert "no cuadra" in rejection(tmp_path / "s", changed(N_TOKENS, count.to_bytes(8, "little"))).why


def test_a_shard_without_tokens_is_refused(tmp_path: Path) -> None:
    assert rejection(tmp_path / "s", changed(N_TOKENS, bytes(8))[:128]).why


@pytest.mark.parametrize("counts", [None, [], {"train": "40"}, {"train": -1}, {"train": True}, {"train": 1.5}, {}, 3])
def test_false_counts_of_text_are_refused(counts: object, tmp_path: Path) -> None:
    assert "bytes de texto" in rejection(tmp_path / "s", good_shards()["train-00000.bin"], {"text_bytes": counts}).why


def test_a_set_that_says_nothing_of_its_text_is_refused(tmp_path: Path) -> None:
    assert "bytes de texto" in rejection(tmp_path / "s", good_shards()["train-00000.bin"], {}).why
