"""Shards: vuelven idénticos, se mapean sin cargarse y cualquier byte de más, de menos o cambiado se señala."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from enlace.data.shards import open_shard_set, write_shard_set
from enlace.data.source import SplitSource
from enlace.errors import ConfigError, CorruptDataError, NotFoundError

END = 300
TOKENIZER = "ab" * 32
documents = st.lists(
    st.lists(st.integers(0, 299), max_size=30).map(lambda ids: np.array(ids, dtype=np.uint16)), min_size=1
)


def write(
    path: Path, train: list[NDArray[np.uint16]], validation: list[NDArray[np.uint16]], shard_tokens: int = 1000
) -> None:
    write_shard_set(
        path,
        {"train": train, "validation": validation},
        tokenizer_sha256=TOKENIZER,
        end_of_text=END,
        text_bytes={"train": 40, "validation": 10},
        shard_tokens=shard_tokens,
    )


def sample(path: Path) -> SplitSource:
    write(path, [np.arange(50, dtype=np.uint16)] * 3, [np.arange(20, dtype=np.uint16)], shard_tokens=60)
    return open_shard_set("s", path, END + 1)


@settings(max_examples=30)
@given(documents, documents, st.integers(1, 100))
def test_tokens_and_offsets_come_back_identical(
    tmp_path_factory: pytest.TempPathFactory,
    train: list[NDArray[np.uint16]],
    validation: list[NDArray[np.uint16]],
    cut: int,
) -> None:
    path = tmp_path_factory.mktemp("shards") / "conjunto"
    write(path, train, validation, cut)
    opened = open_shard_set("s", path, END + 1)
    assert opened.tokenizer_sha256 == TOKENIZER
    for part, split, written in ((opened.train, "train", train), (opened.validation, "validation", validation)):
        assert part.n_tokens == sum(len(document) + 1 for document in written)
        assert np.array_equal(stored_tokens(path, split), np.concatenate([np.append(d, END) for d in written]))
        starts = [np.fromfile(file, dtype="<u8") for file in sorted(path.glob(f"{split}-*.idx"))]
        lengths = np.concatenate([np.diff(offsets.astype(np.int64)) for offsets in starts])
        assert lengths.tolist() == [len(document) + 1 for document in written]


def stored_tokens(path: Path, split: str) -> NDArray[np.uint16]:
    return np.concatenate([np.fromfile(file, dtype="<u2", offset=128) for file in sorted(path.glob(f"{split}-*.bin"))])


def test_windows_overlap_by_one_token_and_never_cross_shards(tmp_path: Path) -> None:
    source = sample(tmp_path / "s").train
    assert (source.n_tokens, source.n_samples(10)) == (153, 15)  # shards de 102 y 51 tokens: 10 y 5 secuencias
    windows = source.windows(np.array([14, 0, 1, 10]), 10)
    assert windows[1].tolist() == list(range(11))
    assert windows[2].tolist() == list(range(10, 21))
    assert windows[3].tolist() == list(range(11))
    assert windows[0].tolist() == [*range(40, 50), END]
    assert source.n_bytes == 40


def test_a_set_without_validation_has_an_empty_validation(tmp_path: Path) -> None:
    path = tmp_path / "s"
    write_shard_set(
        path,
        {"train": iter([np.arange(9, dtype=np.uint16)])},
        tokenizer_sha256=TOKENIZER,
        end_of_text=END,
        text_bytes={"train": 1},
        shard_tokens=5,
    )
    validation = open_shard_set("s", path, END + 1).validation
    assert (validation.n_tokens, validation.n_samples(4), validation.n_bytes) == (0, 0, 0)


def test_the_fingerprint_is_the_content_not_the_place(tmp_path: Path) -> None:
    first, second = sample(tmp_path / "a"), sample(tmp_path / "otra parte" / "b")
    assert first.train.sha256 == second.train.sha256
    assert first.train.sha256 != first.validation.sha256


def test_tokens_stay_on_disk(tmp_path: Path) -> None:
    sample(tmp_path / "s")
    shard = open_shard_set("s", tmp_path / "s", END + 1).train._shards[0]  # type: ignore[attr-defined]
    assert isinstance(shard.tokens, np.memmap)
    assert not shard.tokens.flags.writeable


@pytest.mark.parametrize("name", ["train-00000.bin", "train-00001.idx", "validation-00000.bin", "manifest.json"])
@pytest.mark.parametrize("change", ["flip", "drop", "add", "delete"])
def test_any_damage_is_detected_and_named(tmp_path: Path, name: str, change: str) -> None:
    path = tmp_path / "s"
    sample(path)
    for place in (0, 9, -1):
        original = (path / name).read_bytes()
        damage(path / name, change, place)
        with pytest.raises(CorruptDataError) as error:
            open_shard_set("s", path, END + 1)
        assert name in error.value.where
        (path / name).write_bytes(original)
    open_shard_set("s", path, END + 1)


def damage(file: Path, change: str, place: int) -> None:
    content = bytearray(file.read_bytes())
    if change == "delete":
        file.unlink()
        return
    if change == "flip":
        content[place] ^= 1
    elif change == "drop":
        del content[place]
    else:
        content.insert(place % len(content), 0)
    file.write_bytes(content)


def test_an_extra_file_is_named(tmp_path: Path) -> None:
    sample(tmp_path / "s")
    (tmp_path / "s" / "train-00009.bin").write_bytes(b"")
    with pytest.raises(CorruptDataError, match=r"train-00009\.bin"):
        open_shard_set("s", tmp_path / "s", END + 1)


def test_an_id_outside_the_vocabulary_names_shard_and_place(tmp_path: Path) -> None:
    path = tmp_path / "s"
    bad = np.zeros(30, dtype=np.uint16)
    bad[17] = 65_000
    write(path, [np.zeros(99, dtype=np.uint16), bad], [], shard_tokens=100)
    with pytest.raises(ConfigError) as error:
        open_shard_set("s", path, END + 1)
    problem = error.value.problems[0]
    assert problem.where == str(path / "train-00001.bin")
    assert "el token 17 es el id 65000 y el vocabulario del modelo es 301" in problem.message
    assert "65001" in problem.hint
    assert open_shard_set("s", path, 65_001).train.n_tokens == 131


def test_a_missing_set_is_not_found(tmp_path: Path) -> None:
    with pytest.raises(NotFoundError):
        open_shard_set("s", tmp_path / "falta", END + 1)


def test_ids_wider_than_uint16_are_not_wrapped_in_silence(tmp_path: Path) -> None:
    with pytest.raises(TypeError):
        write(tmp_path / "s", [np.array([70_000])], [])
    assert list(tmp_path.iterdir()) == []
