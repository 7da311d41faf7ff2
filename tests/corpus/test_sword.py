"""El lector de zText."""

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from enlace.corpus.sword import read_module
from enlace.errors import CorruptDataError, NotFoundError
from tests.corpus.ztext import CONF, write_module


def test_each_chapter_is_a_clean_document(tmp_path: Path) -> None:
    write_module(tmp_path)
    first, second, third = read_module(tmp_path)
    assert first.text == "Libro Primero 1\n\nEn el comienzo llovía.\nY salió el sol & la luna."
    assert (first.id, first.title) == ("Uno.1", "Libro Primero 1")
    assert (first.source, first.license) == ("Texto de prueba", "Public Domain")
    assert second.text == "Libro Primero 2\n\nFin."
    assert third.text == "Libro Segundo 1\n\n¿Y después?"


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
def test_a_damaged_module_is_refused_or_read_never_a_crash(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    library = tmp_path_factory.mktemp("sword")
    folder = write_module(library)
    file = folder / data.draw(st.sampled_from(["ot.bzs", "ot.bzv", "ot.bzz", "nt.bzz"]))
    content = bytearray(file.read_bytes())
    place = data.draw(st.integers(0, len(content) - 1))
    content[place : place + 1] = data.draw(st.sampled_from([b"", b"\xff", b"\x00", b"\x00\x00"]))
    file.write_bytes(content)
    try:
        read_module(library)
    except CorruptDataError as error:
        assert str(folder) in error.where


def test_a_missing_block_file_is_named(tmp_path: Path) -> None:
    (write_module(tmp_path) / "nt.bzz").unlink()
    with pytest.raises(CorruptDataError) as error:
        read_module(tmp_path)
    assert "nt.bz" in error.value.where


def test_other_formats_are_refused(tmp_path: Path) -> None:
    write_module(tmp_path, CONF.replace("ZIP", "LZSS"))
    with pytest.raises(CorruptDataError, match="módulo SWORD"):
        read_module(tmp_path)


def test_a_folder_without_modules_is_not_found(tmp_path: Path) -> None:
    with pytest.raises(NotFoundError):
        read_module(tmp_path)
