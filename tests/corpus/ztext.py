"""Un módulo SWORD diminuto, escrito aquí mismo, con el formato zText de verdad."""

import struct
import zlib
from pathlib import Path

CONF = """[Prueba]
DataPath=./modules/texts/ztext/prueba/
ModDrv=zText
CompressType=ZIP
BlockType=BOOK
Description=Texto de prueba
DistributionLicense=Public Domain
"""

OLD = [
    "",
    '<milestone type="x-importer"/>',
    '<div osisID="Uno" type="book"/> <title level="1" type="main">Libro Primero</title>',
    '<chapter n="1" osisID="Uno.1" sID="Uno.1"/>',
    '<w lemma="strong:H1">En el</w> <transChange type="added">comienzo</transChange> llovi\u0301a. ',
    "Y  sali&#243; el sol &amp; la luna<note>nota al pie</note>.",
    '<chapter eID="Uno.1"/><chapter n="2" osisID="Uno.2" sID="Uno.2"/><title type="psalm">Cabecera</title>Fin.',
]
NEW = ['<title type="main">Libro Segundo</title>', '<chapter n="1" osisID="Dos.1" sID="Dos.1"/>', "¿Y después?"]


def write_module(library: Path, conf: str = CONF) -> Path:
    """Escribe el módulo en `library` y devuelve la carpeta de sus datos."""
    (library / "mods.d").mkdir(parents=True)
    (library / "mods.d" / "prueba.conf").write_text(conf, encoding="utf-8")
    data = library / "modules" / "texts" / "ztext" / "prueba"
    data.mkdir(parents=True)
    write_part(data, "ot", OLD)
    write_part(data, "nt", NEW)
    return data


def write_part(data: Path, part: str, entries: list[str]) -> None:
    """Los tres ficheros de una parte: un bloque vacío y otro con todos los versículos, el último enlazado dos veces."""
    block, index, verses = b"", b"", b""
    for entry in entries:
        content = entry.encode("utf-8")
        verses = struct.pack("<IIH", 1, len(block), len(content))
        index += verses
        block += content
    empty, compressed = zlib.compress(b""), zlib.compress(block)
    (data / f"{part}.bzz").write_bytes(empty + compressed)
    places = struct.pack("<III", 0, len(empty), 0) + struct.pack("<III", len(empty), len(compressed), len(block))
    (data / f"{part}.bzs").write_bytes(places)
    (data / f"{part}.bzv").write_bytes(index + verses)
