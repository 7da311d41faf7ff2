"""Leer: cada formato da su texto; lo cortado, lo gigante y lo hostil se salta con su motivo, sin parar nada."""

import bz2
import gzip
import io
import json
import lzma
import tarfile
import zipfile
from pathlib import Path

import pyarrow
import pytest
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st
from pyarrow import parquet

from enlace.config.schema import Limits
from enlace.corpus.read import RawText, Skipped, read_file, source_files
from enlace.corpus.read.wiki import plain_text
from enlace.errors import NotFoundError, RefusedError
from tests.labels import label

LIMITS = Limits(max_document_bytes=200_000, max_archive_members=20)
TEXT = "La señora Ñúñez cebó un mate amargo y se sentó a mirar la lluvia desde la galería de la casa."
LINES = b"".join(
    json.dumps({"text": f"{TEXT} {n}", "id": f"d{n}", "license": "CC0-1.0"}).encode() + b"\n" for n in range(3)
)
PAGE = f"<html><head><title>Mate</title></head><body><nav>Menú</nav><article><p>{TEXT * 4}</p></article></body></html>"


def read(tmp_path: Path, name: str, content: bytes) -> list[RawText | Skipped]:
    path = tmp_path / name
    path.write_bytes(content)
    return list(read_file(path, name, LIMITS))


def texts(found: list[RawText | Skipped]) -> list[str]:
    return [each.text for each in found if isinstance(each, RawText)]


def reasons(found: list[RawText | Skipped]) -> list[str]:
    return [each.reason for each in found if isinstance(each, Skipped)]


def epub(**changes: bytes) -> bytes:
    container = (
        b'<container xmlns="urn:oasis:names:tc:opendocument:xmlns:container"><rootfiles>'
        b'<rootfile full-path="O/p.opf"/></rootfiles></container>'
    )
    package = (
        b'<package xmlns="http://www.idpf.org/2007/opf" xmlns:dc="http://purl.org/dc/elements/1.1/"><metadata>'
        b"<dc:title>El libro</dc:title><dc:rights>CC0</dc:rights></metadata><manifest><item id='b' href='2.xhtml'/>"
        b"<item id='a' href='1.xhtml'/></manifest><spine><itemref idref='a'/><itemref idref='b'/></spine></package>"
    )
    chapter = (
        "<html><head><title>x</title></head><body><h1>Uno</h1><p>{}</p><script>no</script><p>Fin.</p></body></html>"
    )
    files = {
        "META-INF/container.xml": container,
        "O/p.opf": package,
        "O/1.xhtml": chapter.format(TEXT).encode(),
        "O/2.xhtml": chapter.format("Segundo").encode(),
        **{name.replace("__", "/").replace("_xhtml", ".xhtml"): content for name, content in changes.items()},
    }
    return packed(files)


def packed(files: dict[str, bytes]) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return buffer.getvalue()


def docx() -> bytes:
    space = 'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"'
    paragraphs = "".join(f"<w:p><w:r><w:t>{text}</w:t></w:r></w:p>" for text in (TEXT, "Dos"))
    return packed({"word/document.xml": f"<w:document {space}><w:body>{paragraphs}</w:body></w:document>".encode()})


def table() -> bytes:
    buffer = io.BytesIO()
    parquet.write_table(pyarrow.table({"text": [TEXT, ""], "url": ["http://a.example", None]}), buffer)
    return buffer.getvalue()


def warc() -> bytes:
    body = PAGE.encode()
    http = b"HTTP/1.1 200 OK\r\nContent-Type: text/html; charset=utf-8\r\nContent-Length: %d\r\n\r\n%s" % (
        len(body),
        body,
    )
    head = b"WARC/1.0\r\nWARC-Type: response\r\nWARC-Target-URI: http://a.example/\r\n"
    head += b"Content-Type: application/http; msgtype=response\r\n"
    return head + b"WARC-Record-ID: <urn:uuid:1>\r\nContent-Length: %d\r\n\r\n%s\r\n\r\n" % (len(http), http)


WIKI = """<mediawiki xmlns="http://www.mediawiki.org/xml/export-0.11/"><siteinfo><namespaces><namespace key="0"/>
<namespace key="14">Categoría</namespace><namespace key="6">Archivo</namespace></namespaces></siteinfo>
<page><title>Mate</title><ns>0</ns><revision>
<text>{{Ficha|x={{otra}}}}El '''mate''' ({{lang|gn|ka'ay}}) pesa {{unidad|5|kg}}.&lt;ref&gt;nota&lt;/ref&gt;
[[Archivo:a.jpg|mini|pie]] Es de [[Argentina|la Argentina]] ({{x}}, ). [[Categoría:Infusiones]]
{| class="wikitable"
| celda
|}
== Historia ==
* uno
== Referencias ==
{{listaref}}</text></revision></page>
<page><title>Otra</title><ns>0</ns><redirect title="Mate"/>
<revision><text>#REDIRECCIÓN [[Mate]]</text></revision></page>
<page><title>Categoría:X</title><ns>14</ns><revision><text>no</text></revision></page></mediawiki>"""


@pytest.mark.parametrize(
    ("name", "content", "expected"),
    [
        ("a.txt", TEXT.encode(), [TEXT]),
        ("a.txt", b"\xef\xbb\xbf" + TEXT.encode(), [TEXT]),
        ("a.txt", TEXT.encode("cp1252"), [TEXT]),
        ("a.txt", TEXT.encode("utf-16"), [TEXT]),
        ("a.txt.gz", gzip.compress(TEXT.encode()), [TEXT]),
        ("a.txt.bz2", bz2.compress(TEXT.encode()), [TEXT]),
        ("a.txt.xz", lzma.compress(TEXT.encode()), [TEXT]),
        (
            "a.md",
            f"---\nt: 1\n---\n# Título\n\n**{TEXT}** [enlace](http://a)\n\n```\nx = 1\n```\n".encode(),
            [f"Título\n\n{TEXT} enlace\n\n\n"],
        ),
        ("a.jsonl", LINES, [f"{TEXT} {n}" for n in range(3)]),
        ("a.jsonl.zst", zstandard.compress(LINES), [f"{TEXT} {n}" for n in range(3)]),
        ("a.parquet", table(), [TEXT]),
        ("a.docx", docx(), [f"{TEXT}\n\nDos"]),
        ("a.zip", packed({"b.txt": b"dos", "a.txt": b"uno", "../../c.txt": b"tres"}), ["tres", "uno", "dos"]),
    ],
    ids=label,
)
def test_each_format_gives_its_text(tmp_path: Path, name: str, content: bytes, expected: list[str]) -> None:
    assert texts(read(tmp_path, name, content)) == expected


def test_a_page_gives_its_main_text(tmp_path: Path) -> None:
    for name, content in (("a.html", PAGE.encode()), ("a.warc", warc()), ("a.warc.gz", gzip.compress(warc()))):
        (found,) = read(tmp_path, name, content)
        assert isinstance(found, RawText) and TEXT in found.text and "Menú" not in found.text and found.title == "Mate"


def test_a_book_gives_its_chapters_in_order(tmp_path: Path) -> None:
    one, two = read(tmp_path, "a.epub", epub())
    assert isinstance(one, RawText) and isinstance(two, RawText)
    assert (one.title, one.license, one.work) == ("El libro", "CC0", "a.epub")
    assert one.text.split("\n\n") != [] and TEXT in one.text and "Segundo" in two.text
    assert "no" not in one.text.split() and "x" not in one.text.split()


def test_an_encyclopedia_gives_its_articles_without_templates_tables_nor_references(tmp_path: Path) -> None:
    for name, content in (("w.xml", WIKI.encode()), ("w.xml.bz2", bz2.compress(WIKI.encode()))):
        (found,) = read(tmp_path, name, content)
        assert isinstance(found, RawText) and found.title == "Mate"
        assert found.text == "El mate (ka'ay) pesa 5 kg.\nEs de la Argentina.\n\nHistoria\nuno"


def test_templates_leave_nothing_behind() -> None:
    text = plain_text("Nació en {{x}}, Alabama ( ; {{y}} ) y {{siglo|XX||s}} , fin.", set())
    assert "( " not in text and " ," not in text and "siglo XX" in text


def test_a_record_keeps_what_it_says_of_itself(tmp_path: Path) -> None:
    line = json.dumps(
        {"text": TEXT, "id": "x", "meta": {"work": "obra"}, "url": "http://a", "title": "T", "license": "CC0"}
    )
    (found,) = read(tmp_path, "a.jsonl", line.encode())
    assert found == RawText("x", TEXT, "CC0", "http://a", "T", "obra")


def test_one_bad_line_does_not_take_the_others_with_it(tmp_path: Path) -> None:
    long = b'{"text": "' + b"x" * 300_000 + b'"}\n'
    found = read(tmp_path, "a.jsonl", b"{\n" + LINES + long + b'{"otro": 1}\n[]\n"\xff"\n' + LINES)
    assert len(texts(found)) == 6
    assert len(reasons(found)) == 5 and any("200000 bytes" in reason for reason in reasons(found))


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.xyz", b"hola"),
        ("sin-nada", b"hola"),
        ("a.txt", b"\0\x01\x02\x81" * 50),
        ("a.txt", b"x" * 200_001),
        ("a.txt.gz", gzip.compress(TEXT.encode() * 99)[:-12]),
        ("a.txt.gz", gzip.compress(bytes(50_000_000))),
        ("a.txt.gz", b"no es gzip"),
        ("a.jsonl.zst", zstandard.compress(LINES * 999)[:50]),
        ("a.zip", packed({"a.txt": b"x"})[:40]),
        ("a.zip", packed({f"{n}.txt": b"x" for n in range(21)})),
        ("a.tar", b"no es tar" * 100),
        ("a.epub", b"PK\3\4"),
        ("a.epub", epub(**{"META-INF__container.xml": b"<x"})),
        ("a.docx", packed({"otro.xml": b"<x/>"})),
        ("a.parquet", table()[:-20]),
        ("a.parquet", b"PAR1"),
        ("a.warc", b"WARC/1.0\r\n"),
        ("a.warc.gz", gzip.compress(warc())[:100]),
        ("w.xml", WIKI.encode()[:400]),
        ("w.xml", b"<html></html>"),
        ("a.pdf", b"%PDF-1.7 nada"),
        ("a.html", b"<html></html>"),
    ],
    ids=label,
)
def test_what_cannot_be_read_is_skipped_with_its_reason(tmp_path: Path, name: str, content: bytes) -> None:
    found = read(tmp_path, name, content)
    assert texts(found) == [] and reasons(found) and all(reasons(found))


def test_a_bomb_inside_an_archive_is_skipped_and_the_rest_is_read(tmp_path: Path) -> None:
    found = read(
        tmp_path, "a.zip", packed({"bomba.txt": bytes(80_000_000), "bien.txt": TEXT.encode(), "z.zip": packed({})})
    )
    assert texts(found) == [TEXT] and len(reasons(found)) == 2


def test_an_archive_never_writes_anywhere(tmp_path: Path) -> None:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as archive:
        for name, kind in (("/abs.txt", tarfile.REGTYPE), ("../up.txt", tarfile.REGTYPE), ("l.txt", tarfile.SYMTYPE)):
            info = tarfile.TarInfo(name)
            info.type, info.size, info.linkname = kind, 0 if kind == tarfile.SYMTYPE else 4, "/etc/passwd"
            archive.addfile(info, io.BytesIO(b"hola"))
    before = sorted(tmp_path.rglob("*"))
    assert texts(read(tmp_path, "a.tar.gz", buffer.getvalue())) == ["hola", "hola"]
    assert [path for path in sorted(tmp_path.rglob("*")) if path not in before] == [tmp_path / "a.tar.gz"]


def test_an_xml_entity_neither_grows_nor_reads_files(tmp_path: Path) -> None:
    declared = b'<!DOCTYPE x [<!ENTITY a SYSTEM "file:///etc/passwd"><!ENTITY b "&a;&a;">]>'
    evil = declared + b"<html><body><p>&a;&b;hola</p></body></html>"
    found = read(tmp_path, "a.epub", epub(**{"O__1_xhtml": evil}))
    assert "root:" not in " ".join(texts(found))


def test_a_source_is_a_file_or_a_folder_in_order_and_without_links(tmp_path: Path) -> None:
    for name in ("b.txt", "a.txt", "c/d.txt"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("x")
    assert [path.name for path in source_files(tmp_path)] == ["a.txt", "b.txt", "d.txt"]
    assert source_files(tmp_path / "a.txt") == [tmp_path / "a.txt"]
    (tmp_path / "l.txt").symlink_to("/etc/passwd")
    with pytest.raises(RefusedError):
        source_files(tmp_path)
    with pytest.raises(NotFoundError):
        source_files(tmp_path / "no")


@settings(max_examples=80)
@given(
    name=st.sampled_from(
        [
            "a.txt",
            "a.md",
            "a.jsonl",
            "a.html",
            "a.epub",
            "a.docx",
            "a.pdf",
            "a.zip",
            "a.tar",
            "a.parquet",
            "a.warc",
            "w.xml",
            "a.txt.gz",
        ]
    ),
    data=st.data(),
)
def test_any_bytes_are_read_or_skipped(
    tmp_path_factory: pytest.TempPathFactory, name: str, data: st.DataObject
) -> None:
    whole = {"a.epub": epub(), "a.docx": docx(), "a.parquet": table(), "a.warc": warc(), "w.xml": WIKI.encode()}.get(
        name, LINES
    )
    start = data.draw(st.integers(0, len(whole)))
    end = data.draw(st.integers(start, len(whole)))
    content = whole[:start] + data.draw(st.binary(max_size=20)) + whole[end:]
    found = read(tmp_path_factory.mktemp("x"), name, content)
    assert all(isinstance(each, RawText | Skipped) for each in found)
