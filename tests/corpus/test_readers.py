"""Los demás orígenes: páginas de ayuda, libros de Gutenberg y la carpeta de la persona."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from enlace.corpus.document import pieces, tidy
from enlace.corpus.folder import read_folder
from enlace.corpus.gutenberg import parse_book, read_books
from enlace.corpus.help_pages import read_pages
from enlace.errors import CorruptDataError, NotFoundError

PAGE = """<!DOCTYPE html><html><head><title>Guardar\n un documento</title><style>p {{}}</style></head>
<body><header>Menú</header><div>Índice</div>
<div id="DisplayArea"><h1>Guardar un documento</h1><script>var x;</script>
<p>Pulse <b>Guardar</b> &iacute; y\nespere.<br>Ya est&aacute;.</p><div><p>{extra}</p></div>
<div class="relatedtopics"><p>Temas relacionados</p><div>Otro</div></div><p>Último.</p></div>
<footer><p>This page is: x</p></footer></body></html>"""

BOOK = """\ufeffThe Project Gutenberg eBook of Prueba

Title: Un libro de prueba
Author: Nadie
Language: {language}

*** START OF THE PROJECT GUTENBERG EBOOK UN LIBRO DE PRUEBA ***

Produced by somebody

CAPÍTULO PRIMERO

--Buenos días--dijo
la _señora_, sin mirar.

Y se fue.

*** END OF THE PROJECT GUTENBERG EBOOK UN LIBRO DE PRUEBA ***
Licencia
"""


def book(language: str = "Spanish") -> bytes:
    return BOOK.format(language=language).replace("\n", "\r\n").encode()


def test_a_help_page_keeps_only_its_article(tmp_path: Path) -> None:
    (tmp_path / "a.html").write_text(PAGE.format(extra="Nuevo."), encoding="utf-8")
    (document,) = read_pages(tmp_path, "Ayuda", "MPL-2.0")
    assert document.text == "Guardar un documento\n\nPulse Guardar í y espere.\nYa está.\nNuevo.\nÚltimo."
    assert (document.id, document.title, document.license) == ("a.html", "Guardar un documento", "MPL-2.0")


def test_what_was_on_an_earlier_page_is_not_repeated(tmp_path: Path) -> None:
    for name, extra in (("a", "Uno."), ("b", "Dos."), ("c", "Uno.")):
        (tmp_path / f"{name}.html").write_text(PAGE.format(extra=extra), encoding="utf-8")
    first, second = read_pages(tmp_path, "", "")
    assert "Ya está." in first.text
    assert second.text == "Guardar un documento\n\nDos."


def test_a_folder_without_pages_is_not_found(tmp_path: Path) -> None:
    with pytest.raises(NotFoundError):
        read_pages(tmp_path, "", "")


def test_a_book_loses_what_gutenberg_adds() -> None:
    parsed = parse_book(book(), "1.txt")
    assert parsed.text == "CAPÍTULO PRIMERO\n\n—Buenos días—dijo la señora, sin mirar.\n\nY se fue."
    assert (parsed.title, parsed.author) == ("Un libro de prueba", "Nadie")


@pytest.mark.parametrize("content", [book("English"), book().replace(b"*** END", b"*** FIN"), b"<html>", b"\xff\x00"])
def test_what_is_not_a_spanish_book_is_rejected_with_the_reason(content: bytes) -> None:
    with pytest.raises(CorruptDataError) as error:
        parse_book(content, "1.txt")
    assert error.value.where == "1.txt"
    assert error.value.why


def test_books_in_other_languages_are_skipped_aloud(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "1.txt").write_bytes(book("English"))
    with pytest.raises(NotFoundError):
        read_books(tmp_path)
    (tmp_path / "2.txt").write_bytes(book())
    (document,) = read_books(tmp_path)
    assert "1.txt" in capsys.readouterr().err
    assert document.id == "gutenberg-2-000"
    assert document.url.endswith("/ebooks/2")
    assert document.license == "dominio público en Estados Unidos"


def test_a_local_folder_is_read_in_order_with_its_own_licences(tmp_path: Path) -> None:
    (tmp_path / "b.md").write_text("Hola\r\n\r\n\r\n\r\nadio\u0301s", encoding="utf-8")
    (tmp_path / "a.jsonl").write_text(
        '{"text": "uno"}\n{"id": "x", "text": "dos", "license": "CC0"}\n', encoding="utf-8"
    )
    (tmp_path / "vacio.txt").touch()
    (tmp_path / "foto.png").write_bytes(b"\x89PNG")
    documents = read_folder(tmp_path)
    assert [(d.id, d.text) for d in documents] == [("a.jsonl:1", "uno"), ("x", "dos"), ("b.md#0", "Hola\n\nadiós")]
    assert documents[1].license == "CC0"


@pytest.mark.parametrize(
    ("name", "content", "where"),
    [
        ("a.txt", b"\xe9", "a.txt"),
        ("a.jsonl", b'{"text": "bien"}\n{mal', "a.jsonl:2"),
        ("a.jsonl", b'{"text": ""}', "a.jsonl:1"),
        ("a.jsonl", b'{"text": "x", "id": "\\ud800"}', "a.jsonl:1"),
        ("a.jsonl", b"[1]", "a.jsonl:1"),
    ],
)
def test_an_unreadable_local_text_is_named(tmp_path: Path, name: str, content: bytes, where: str) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(CorruptDataError) as error:
        read_folder(tmp_path)
    assert error.value.where == str(tmp_path / where)


def test_a_folder_without_texts_is_not_found(tmp_path: Path) -> None:
    with pytest.raises(NotFoundError):
        read_folder(tmp_path)


@given(st.text(alphabet="aé \n"), st.integers(1, 20))
def test_pieces_keep_every_word_and_are_bounded(text: str, size: int) -> None:
    cut = list(pieces(text, size))
    assert "".join("".join(cut).split()) == "".join(text.split())
    longest_line = max(len(line) for line in text.split("\n"))
    assert all(piece and len(piece) <= 2 * size + longest_line for piece in cut)


@given(st.text())
def test_tidying_twice_changes_nothing(text: str) -> None:
    once = tidy(text)
    assert tidy(once) == once
    assert "\n\n\n" not in once
