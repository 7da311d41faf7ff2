"""El texto de una respuesta: el suyo, con sus tildes, y ninguno que rompa nada."""

import gzip
import time
import warnings

import pytest
from hypothesis import given
from hypothesis import strategies as st

from enlace.agent.web import NetworkError, TooBigError
from enlace.agent.web.body import decode, read_body
from tests.labels import label

# Juegos de Python que no son de la web.
ODD = ["punycode", "idna", "unicode_escape", "raw_unicode_escape", "utf-7", "hex", "zlib", "rot13", "undefined", "\0"]


@pytest.mark.parametrize(
    ("body", "content_type", "expected"),
    [
        ("señal".encode("latin-1"), "text/html; charset=ISO-8859-1", "señal"),
        ("señal".encode("latin-1"), "text/html", "señal"),
        ("señal".encode(), "text/html; charset=no-existe", "señal"),
        ("\ufeffseñal".encode(), "text/html; charset=latin-1", "señal"),
        ("señal".encode("utf-16"), "text/html", "señal"),
        (
            b"<?xml version='1.0' encoding='iso-8859-2'?>\xb1",
            "text/xml",
            "<?xml version='1.0' encoding='iso-8859-2'?>ą",
        ),
        ("señal".encode("cp1252"), "text/html; charset=us-ascii", "señal"),
        ("“señal”".encode("cp1252"), "text/html; charset=latin1", "“señal”"),
        ("日本語".encode("shift_jis"), "text/html; charset=Shift_JIS", "日本語"),
        ("<meta charset=utf-16>señal".encode(), "text/html", "<meta charset=utf-16>señal"),
        ('<meta charset="windows-1252">señal €'.encode("cp1252"), "text/html", '<meta charset="windows-1252">señal €'),
    ],
    ids=label,
)
def test_text_is_read_with_its_own_characters(body: bytes, content_type: str, expected: str) -> None:
    assert decode(body, {"content-type": content_type}) == expected


@given(st.binary(max_size=300), st.text(max_size=60) | st.sampled_from(ODD).map("text/html; charset={}".format))
def test_text_never_fails(body: bytes, content_type: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert isinstance(decode(body, {"content-type": content_type}), str)


def test_a_broken_byte_does_not_take_the_accents_of_the_whole_page() -> None:
    page = "El niño soñó con la señal. ".encode() * 20 + b"\xff fin"
    for content_type in ("text/html", "text/html; charset=utf-8"):
        text = decode(page, {"content-type": content_type})
        assert text.count("niño soñó") == 20 and text.endswith("\N{REPLACEMENT CHARACTER} fin")


def test_a_page_that_says_utf_8_and_is_not_keeps_its_accents() -> None:
    assert (
        decode("años de señales".encode("latin-1"), {"content-type": "text/html; charset=utf-8"}) == "años de señales"
    )


@pytest.mark.parametrize("content_type", ["application/json", "text/plain"])
def test_only_a_document_says_its_characters_inside(content_type: str) -> None:
    text = '{"q": "<meta charset=latin-1> y charset=latin-1", "r": "señal"}'
    assert decode(text.encode(), {"content-type": content_type}) == text


@pytest.mark.parametrize("name", ODD)
def test_no_name_of_characters_hangs_it(name: str) -> None:
    start = time.monotonic()
    decode(b"xn--a-" + b"z" * 2_000_000, {"content-type": f"text/html; charset={name}"})
    assert time.monotonic() - start < 2


def members(count: int) -> bytes:
    return gzip.compress(b"uno ") + gzip.compress(b"") * count + gzip.compress(b"dos")


def test_what_comes_in_several_pieces_of_gzip_is_read_whole_and_soon() -> None:
    start = time.monotonic()
    assert read_body([members(20_000)], "gzip", "casa", 1_000_000) == b"uno dos"
    assert time.monotonic() - start < 5


def test_the_limit_is_exact_before_and_after_decompressing() -> None:
    exact, over = bytes(1000), bytes(1001)
    assert read_body([exact], "", "casa", 1000) == exact
    assert read_body([gzip.compress(exact)], "gzip", "casa", 1000) == exact
    for chunks, encoding in (([over], ""), ([exact, b"x"], ""), ([gzip.compress(over)], "gzip")):
        with pytest.raises(TooBigError):
            read_body(chunks, encoding, "casa", 1000)


@pytest.mark.parametrize("encoding", ["br", "zstd", "gzip, gzip", "compress", "ñ"])
def test_another_compression_is_refused(encoding: str) -> None:
    with pytest.raises(NetworkError):
        read_body([gzip.compress(b"mate")], encoding, "casa", 1000)


@given(st.binary(max_size=200), st.sampled_from(["gzip", "deflate"]), st.booleans())
def test_any_compressed_bytes_end_in_a_body_or_a_clear_error(raw: bytes, encoding: str, headed: bool) -> None:
    packed = gzip.compress(raw)[: len(raw)] + raw if headed else raw
    try:
        assert isinstance(read_body([packed], encoding, "casa", 1000), bytes)
    except (NetworkError, TooBigError) as error:
        assert "casa" in error.what
