"""Textos de un desconocido: ni bombas que agoten la memoria, ni enlaces que metan en el modelo lo de otra carpeta."""

import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest
import zstandard

from enlace.config.schema.data import Data
from enlace.corpus.folder import read_folder
from enlace.data import open_data, read_documents
from enlace.data.text import MAX_LINE_BYTES
from enlace.errors import CorruptDataError, NotFoundError, RefusedError
from tests.crash.forks import IGNORE_FORK_WARNING, start_child, wait_for
from tests.hostile.test_tensors import limit_memory

GIB = 1 << 30
SECONDS = 10
GOOD = b'{"text": "hola"}\n'


def rejection(path: Path) -> CorruptDataError:
    with pytest.raises(CorruptDataError) as caught:
        list(read_documents(path))
    return caught.value


@pytest.mark.filterwarnings(IGNORE_FORK_WARNING)
@pytest.mark.parametrize("filling", [b"a", b"\n", b" ", b"\0"], ids=repr)
def test_a_compressed_bomb_costs_neither_memory_nor_time(filling: bytes, tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl.zst"
    path.write_bytes(zstandard.compress(GOOD) + zstandard.compress(filling * GIB))
    assert path.stat().st_size < 40_000

    def read() -> None:
        limit_memory()
        begin = time.process_time()
        assert rejection(path).where == f"{path}:2"
        assert time.process_time() - begin < SECONDS

    assert wait_for(start_child(read)) == 0


@pytest.mark.parametrize("suffix", [".jsonl", ".jsonl.zst"])
def test_an_endless_line_is_named(suffix: str, tmp_path: Path) -> None:
    path = tmp_path / f"x{suffix}"
    just_fits = b'{"text": "' + b"a" * (MAX_LINE_BYTES - 13) + b'"}\n'
    for content, line in ((just_fits + just_fits[:-3] + b'a"}\n', 2), (GOOD + b"a" * (MAX_LINE_BYTES + 1), 2)):
        path.write_bytes(zstandard.compress(content) if suffix.endswith("zst") else content)
        error = rejection(path)
        assert error.where == f"{path}:{line}" and "la línea pasa de 16 MiB" in error.why


@pytest.mark.parametrize(
    ("name", "content", "why"),
    [
        ("x.jsonl", b"{mal", "se tuerce en la columna 2"),
        ("x.jsonl", b"\xff", "el byte 0 no es UTF-8"),
        ("x.jsonl", b'{"text": "\\ud800"}', "medio carácter"),
        ("x.jsonl", b'{"text": "a", "id": ' + b"9" * 5000 + b"}", "un número de 5000 cifras"),
        ("x.jsonl", b"[" * 100_000, "demasiados niveles"),
        ("x.txt", b"\xff", "el byte 0 no es UTF-8"),
        ("x.jsonl.zst", b"no es zstd", "no es zstd"),
        ("x.jsonl.zst", zstandard.compress(GOOD)[:-3], "está cortado"),
    ],
)
def test_every_reason_is_in_spanish(name: str, content: bytes, why: str, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(content)
    assert why in rejection(tmp_path).why
    if not name.endswith("zst"):
        with pytest.raises(CorruptDataError, match="el texto no se puede leer") as caught:
            read_folder(tmp_path)
        assert why in caught.value.why


@pytest.mark.parametrize("kind", ["bytes", "shards"])
def test_a_name_too_long_does_not_exist(kind: str) -> None:
    source = {"name": "a", "path": "x" * 300, "weight": 1.0}
    with pytest.raises(NotFoundError):
        open_data(Data.model_validate({"kind": kind, "sources": [source], "validation_fraction": 0.0}), 288)


@pytest.mark.parametrize("read", [read_documents, read_folder])
@pytest.mark.parametrize("place", ["x.txt", "x", "dentro/x.jsonl"])
@pytest.mark.parametrize("target", ["secreto.txt", "privado", "nada"])
def test_a_link_among_the_texts_is_refused(
    read: Callable[[Path], object], place: str, target: str, tmp_path: Path
) -> None:
    (tmp_path / "privado").mkdir()
    for secret in ("secreto.txt", "privado/secreto.txt"):
        (tmp_path / secret).write_text("secreto")
    link = tmp_path / "textos" / place
    link.parent.mkdir(parents=True)
    (tmp_path / "textos" / "bueno.txt").write_text("hola")
    link.symlink_to(tmp_path / target)
    with pytest.raises(RefusedError) as caught:
        list(read(tmp_path / "textos"))  # type: ignore[call-overload]
    assert caught.value.where == str(link)


@pytest.mark.parametrize("place", ["", "d.txt"])
def test_the_path_of_the_source_may_be_a_link(place: str, tmp_path: Path) -> None:
    (tmp_path / "textos").mkdir()
    (tmp_path / "textos" / "d.txt").write_text("hola")
    (tmp_path / "enlace.txt").symlink_to(tmp_path / "textos" / place)
    assert [document.text for document in read_documents(tmp_path / "enlace.txt")] == ["hola"]


@pytest.mark.timeout(20)
def test_a_pipe_among_the_texts_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "x.txt")
    for path in (tmp_path, tmp_path / "x.txt"):
        with pytest.raises(NotFoundError):
            list(read_documents(path))
