"""Abrir los datos de una configuración."""

import json
from pathlib import Path

import numpy as np
import pytest

from enlace.config.schema.data import Data, Source
from enlace.data import Dataset, open_data, write_shard_set
from enlace.errors import ConfigError, NotFoundError
from enlace.tokenizer import ByteTokenizer

TOKENIZER = ByteTokenizer()
VOCABULARY = TOKENIZER.vocab_size


def data(*paths: Path, fraction: float = 0.3, kind: str = "bytes") -> Data:
    sources = [Source(name=f"s{n}", path=str(path), weight=1.0) for n, path in enumerate(paths)]
    return Data.model_validate({"kind": kind, "sources": sources, "validation_fraction": fraction})


def write_documents(path: Path, count: int = 40, mark: str = "") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    records = [{"id": f"{mark}{k}", "text": f"{mark}El número {k}. " + "ñu " * (k % 7)} for k in range(count)]
    path.write_text("".join(json.dumps(record, ensure_ascii=False) + "\n" for record in records), encoding="utf-8")
    return path


def write_shards(path: Path, tokenizer_sha256: str = TOKENIZER.sha256) -> Path:
    texts = [f"Documento {k}. " for k in range(40)]
    write_shard_set(
        path,
        {"train": map(TOKENIZER.encode, texts[:30]), "validation": map(TOKENIZER.encode, texts[30:])},
        tokenizer_sha256=tokenizer_sha256,
        end_of_text=TOKENIZER.end_of_text,
        text_bytes={"train": len("".join(texts[:30])), "validation": len("".join(texts[30:]))},
        shard_tokens=200,
    )
    return path


def all_documents(dataset: Dataset, split: str) -> list[str]:
    """Los documentos de una parte, recompuestos a partir de sus secuencias en orden."""
    source = getattr(dataset, split).sources[0]
    windows = source.windows(np.arange(source.n_samples(1)), 1)
    ids = [int(windows[0, 0]), *windows[:, 1].tolist()]
    cuts = [place for place, id_ in enumerate(ids) if id_ == TOKENIZER.end_of_text]
    return [TOKENIZER.decode(ids[a:b]) for a, b in zip([0, *(cut + 1 for cut in cuts)], cuts, strict=False)]


def test_every_document_is_in_exactly_one_part_and_ends_with_the_end_token(tmp_path: Path) -> None:
    file = write_documents(tmp_path / "d.jsonl")
    dataset = open_data(data(file), VOCABULARY)
    train, validation = all_documents(dataset, "train"), all_documents(dataset, "validation")
    written = [json.loads(line)["text"] for line in file.read_text(encoding="utf-8").splitlines()]
    assert validation
    assert sorted(train + validation) == sorted(written)


def test_bytes_and_tokens_count_only_the_original_text(tmp_path: Path) -> None:
    file = write_documents(tmp_path / "d.jsonl")
    dataset = open_data(data(file), VOCABULARY)
    validation = dataset.validation.sources[0]
    texts = all_documents(dataset, "validation")
    assert validation.n_bytes == len("".join(texts).encode())
    assert validation.n_tokens == validation.n_bytes + len(texts)
    assert dataset.bytes_per_token == pytest.approx(validation.n_bytes / validation.n_tokens)
    assert dataset.tokenizer_sha256 == TOKENIZER.sha256


def test_the_fingerprint_follows_the_content_and_the_split_but_not_the_place(tmp_path: Path) -> None:
    here = open_data(data(write_documents(tmp_path / "d.jsonl")), VOCABULARY).fingerprint
    there = open_data(data(write_documents(tmp_path / "á b" / "x.jsonl")), VOCABULARY).fingerprint
    assert here == there
    assert here.keys() == {"s0"}
    resplit = open_data(data(tmp_path / "d.jsonl", fraction=0.6), VOCABULARY).fingerprint
    other = open_data(data(write_documents(tmp_path / "e.jsonl", mark="x")), VOCABULARY).fingerprint
    assert len({here["s0"], resplit["s0"], other["s0"]}) == 3


def test_a_new_source_does_not_change_the_split_of_the_others(tmp_path: Path) -> None:
    first = write_documents(tmp_path / "a.jsonl")
    second = write_documents(tmp_path / "b.jsonl", mark="b")
    alone = open_data(data(first), VOCABULARY)
    together = open_data(data(first, second), VOCABULARY)
    assert together.fingerprint["s0"] == alone.fingerprint["s0"]
    assert len(together.train.sources) == 2


def test_shards_and_bytes_of_the_same_tokens_give_batches(tmp_path: Path) -> None:
    dataset = open_data(data(write_shards(tmp_path / "s"), kind="shards"), VOCABULARY)
    batch = dataset.train.batch(0, 5, 16, seed=1)
    assert batch.shape == (5, 17)
    assert batch.dtype == np.uint16
    assert "Documento" in TOKENIZER.decode(dataset.train.batch(0, 20, 16, seed=1).ravel().tolist())
    assert dataset.bytes_per_token == pytest.approx(14 / 15)


def test_a_single_document_cannot_be_split(tmp_path: Path) -> None:
    file = write_documents(tmp_path / "d.jsonl", count=1)
    with pytest.raises(ConfigError) as error:
        open_data(data(file), VOCABULARY)
    assert "data.validation_fraction" in error.value.why
    dataset = open_data(data(file, fraction=0.0), VOCABULARY)
    assert dataset.validation.sources == ()
    assert dataset.bytes_per_token == dataset.train.bytes_per_token


def test_sources_of_different_tokenizers_do_not_mix(tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as error:
        open_data(
            data(write_shards(tmp_path / "a"), write_shards(tmp_path / "b", "cd" * 32), kind="shards"), VOCABULARY
        )
    assert "s1" in error.value.why


def test_bytes_need_room_for_every_id(tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as error:
        open_data(data(write_documents(tmp_path / "d.jsonl")), 256)
    assert "288" in error.value.why


@pytest.mark.parametrize("kind", ["bytes", "shards"])
def test_a_missing_source_is_named(tmp_path: Path, kind: str) -> None:
    with pytest.raises(NotFoundError) as error:
        open_data(data(tmp_path / "falta", kind=kind), VOCABULARY)
    assert error.value.where == str(tmp_path / "falta")
    assert error.value.fix


def test_an_empty_file_has_no_documents(tmp_path: Path) -> None:
    (tmp_path / "d.jsonl").touch()
    with pytest.raises(NotFoundError):
        open_data(data(tmp_path), VOCABULARY)
