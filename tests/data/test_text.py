"""Leer documentos: en orden fijo, sin perder nada, y señalando fichero y línea cuando algo está mal."""

import json
from pathlib import Path

import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from enlace.data import Document, read_documents
from enlace.durable import publish
from enlace.errors import CorruptDataError, NotFoundError


def jsonl(*records: object) -> bytes:
    return b"".join(json.dumps(record, ensure_ascii=False).encode() + b"\n" for record in records)


def test_a_folder_is_read_in_name_order_with_its_subfolders(tmp_path: Path) -> None:
    (tmp_path / "b.txt").write_text("dos", encoding="utf-8")
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "z.jsonl").write_bytes(jsonl({"id": "1", "text": "uno"}))
    (tmp_path / "c.jsonl.zst").write_bytes(zstandard.compress(jsonl({"id": "3", "text": "tres"})))
    (tmp_path / "leeme.pdf").write_bytes(b"no es texto")
    assert [document.text for document in read_documents(tmp_path)] == ["uno", "dos", "tres"]


def test_identity_is_the_given_id_or_else_the_content(tmp_path: Path) -> None:
    here, there = tmp_path / "aqui.txt", tmp_path / "alli.txt"
    for file in (here, there):
        file.write_bytes("\ufeffhola".encode())
    assert list(read_documents(here)) == list(read_documents(there))
    lines = tmp_path / "x.jsonl"
    lines.write_bytes(jsonl({"id": "propio", "text": "hola"}, {"text": "hola"}, {"id": None, "text": "hola"}))
    content_id = next(read_documents(here)).id
    assert [d.id for d in read_documents(lines)] == ["propio", content_id, content_id]


@given(st.lists(st.text(min_size=1), min_size=1), st.integers(min_value=1, max_value=200))
def test_compressed_lines_survive_any_chunking(
    tmp_path_factory: pytest.TempPathFactory, texts: list[str], cut: int
) -> None:
    file = tmp_path_factory.mktemp("zst") / "d.jsonl.zst"
    content = jsonl(*({"id": "x", "text": text} for text in texts))
    # Dos marcos seguidos, como deja `cat a.zst b.zst`, y la última línea sin salto.
    file.write_bytes(zstandard.compress(content[:cut]) + zstandard.compress(content[cut:-1] or b""))
    assert list(read_documents(file)) == [Document("x", text) for text in texts]


@pytest.mark.parametrize(
    "line",
    [
        b"{mal",
        b"[1]",
        b'{"id": "sin texto"}',
        b'{"text": 3}',
        b'{"text": ""}',
        b'{"text": "\xff"}',
        b'{"text": "\\ud800"}',
        b"",
        b"[" * 100_000,
    ],
)
def test_a_bad_line_is_named(tmp_path: Path, line: bytes) -> None:
    file = tmp_path / "d.jsonl"
    file.write_bytes(jsonl({"id": "1", "text": "bien"}) + line + b"\n")
    with pytest.raises(CorruptDataError) as error:
        list(read_documents(file))
    assert error.value.where == f"{file}:2"
    assert error.value.why


@pytest.mark.parametrize("content", [b"", b"\xe9"])
def test_a_bad_text_file_is_named(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "d.txt").write_bytes(content)
    with pytest.raises(CorruptDataError) as error:
        list(read_documents(tmp_path))
    assert error.value.where == str(tmp_path / "d.txt")


@pytest.mark.parametrize("damage", [lambda b: b[:-3], lambda b: b + b"x", lambda b: b"x" + b[1:], lambda b: b""])
def test_a_damaged_compressed_file_is_named(tmp_path: Path, damage) -> None:  # type: ignore[no-untyped-def]
    file = tmp_path / "d.jsonl.zst"
    file.write_bytes(damage(zstandard.compress(jsonl({"id": "1", "text": "hola"}))))
    with pytest.raises(CorruptDataError) as error:
        list(read_documents(file))
    assert str(file) in error.value.where


def test_a_published_folder_is_verified_first(tmp_path: Path) -> None:
    folder = tmp_path / "d"
    publish(folder, {"documents.jsonl": jsonl({"id": "1", "text": "hola"})}, kind="documents")
    assert [d.text for d in read_documents(folder)] == ["hola"]
    file = folder / "documents.jsonl"
    file.write_bytes(file.read_bytes().replace(b"hola", b"hole"))
    with pytest.raises(CorruptDataError, match=r"documents\.jsonl"):
        list(read_documents(folder))


@pytest.mark.parametrize("name", ["falta", "vacia"])
def test_no_documents_says_how_to_get_them(tmp_path: Path, name: str) -> None:
    (tmp_path / "vacia").mkdir()
    with pytest.raises(NotFoundError) as error:
        list(read_documents(tmp_path / name))
    assert "scripts/prepare_smoke_data.sh" in error.value.fix
