"""El lector de YAML 1.2."""

import math
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from enlace.config.yaml12 import MAX_BYTES, read_file, read_value, scalar


def parse(text: str) -> object:
    node, problems = read_value(text, "prueba", ())
    assert not problems, problems
    return node.plain() if node else None


def complaints(text: str) -> list[str]:
    node, problems = read_value(text, "prueba", ())
    assert node is None
    return [problem.message for problem in problems]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("3e-4", 3e-4),
        ("1e3", 1000.0),
        (".5", 0.5),
        ("5.", 5.0),
        ("+7", 7),
        ("012", 12),
        ("0o17", 15),
        ("0x1F", 31),
        ("-9223372036854775808", -(2**63)),
        ("-.inf", -math.inf),
        ("True", True),
        ("~", None),
        ("", None),
        ("22:30", "22:30"),
        ("no", "no"),
        ("on", "on"),
        ("1_000", "1_000"),
        ("2026-12-01", "2026-12-01"),
        ("0b11", "0b11"),
        ("1e", "1e"),
        ("١٢", "١٢"),
        (".inf.", ".inf."),
    ],
)
def test_plain_scalars_follow_the_core_schema(text: str, value: object) -> None:
    found = scalar(text)
    assert (type(found), found) == (type(value), value)
    assert math.isnan(float(str(scalar(".NaN"))))


def test_quoted_and_block_scalars_are_always_text() -> None:
    assert parse("[\"1\", '2', 'no', \"\"]") == ["1", "2", "no", ""]
    assert parse("|\n 3\n 4\n") == "3\n4\n"


def test_keys_are_text_and_nested_values_keep_their_order() -> None:
    assert parse("{b: 1, a: {true: no, 1: 2}}") == {"b": 1, "a": {"true": "no", "1": 2}}


def test_every_value_knows_its_line(tmp_path: Path) -> None:
    path = tmp_path / "x.yaml"
    path.write_text("# comentario\na:\n  b: 1\n  c:\n    - 2\n    - 3\n", encoding="utf-8")
    node, _ = read_file(path)
    assert node is not None
    assert {key: leaf.origin.line for key, leaf in node.leaves()} == {"a.b": 3, "a.c.0": 5, "a.c.1": 6}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("[&a 1, 2]", "las anclas de YAML («&nombre») no se admiten"),
        ("[*a]", "los alias de YAML («*nombre») no se admiten: escribe el valor"),
        ("!!python/name:os.system x", "las etiquetas de YAML («!tipo») no se admiten"),
        ("!!int '3'", "las etiquetas de YAML («!tipo») no se admiten"),
        ("{? [a] : 1}", "la clave tiene que ser una palabra"),
        ("a\n---\nb", "hay un segundo documento («---»): solo se admite uno por fichero"),
        ("[" * 5000, "hay más de 32 niveles anidados"),
        ("9223372036854775808", "el número entero no cabe en 64 bits"),
        ("9" * 5000, "el número entero no cabe en 64 bits"),
        ('"\\ud800"', "el texto lleva un escape \\uD800–\\uDFFF, que no es un carácter"),
        ("{a: 1, a: 2}", "clave repetida"),
        ("a\x07", "hay un carácter que no es texto (U+0007)"),
    ],
)
def test_refused_constructs_are_named(text: str, expected: str) -> None:
    assert complaints(text) == [expected]


def test_merge_keys_are_not_special() -> None:
    assert parse("{<<: {a: 1}}") == {"<<": {"a": 1}}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a:\n\tb: 1", "hay un tabulador: sangra con espacios"),
        ("a: b: c", "sobra un «:» (en un texto, ponlo entre comillas) o la sangría no cuadra"),
        ("a: 1\nb\nc: 2", "falta el «:» entre la clave y el valor"),
        ("a: [1, 2", "falta cerrar unas comillas, un corchete o una llave"),
        ("a: 'x", "falta cerrar unas comillas, un corchete o una llave"),
        ("[1, 2}", "falta una coma, o cerrar un corchete o una llave"),
        ("a: @x", "un valor no puede empezar por @, ` o %: ponlo entre comillas"),
        ("- a\nb: 1", "la sangría no cuadra con las líneas de arriba"),
        ("a: - b", "aquí no puede empezar una lista o una clave"),
        (r'"\q"', r"hay un escape \ que no existe: usa comillas simples o \\"),
        (r'"\UFFFFFFFF"', r"hay un escape \U que no es un carácter"),
        ("%YAML 3.0\n---\na", "las directivas de YAML («%…») no se admiten"),
        ("!<x", "las etiquetas de YAML («!tipo») no se admiten"),
        ("[* ]", "las anclas y los alias de YAML («&», «*») no se admiten"),
        ("}", "no se entiende esta línea"),
    ],
)
def test_syntax_errors_say_what_is_wrong_and_quote_the_line(text: str, expected: str) -> None:
    (message,) = complaints(text)
    assert message.startswith(f"YAML mal escrito: {expected}: «")


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("a: 1\nb: ñ\n".encode("latin-1"), ":2: no está en UTF-8 (byte 0xf1)."),
        ("a: 1".encode("utf-16"), ":1: no está en UTF-8 (byte 0xff)."),
        (b"a: 1\nb: \0\n", ":2: hay un carácter que no es texto (U+0000)"),
        (b"", ":1: el fichero está vacío: se esperaban líneas «clave: valor»"),
        (b"# solo un comentario\n", ":1: el fichero está vacío: se esperaban líneas «clave: valor»"),
        (b"\n- a\n", ":2: se esperaban líneas «clave: valor» y hay una lista"),
        (b"hola\n", ":1: se esperaban líneas «clave: valor» y hay un valor suelto"),
        (b" " * (MAX_BYTES + 1), ": ocupa más de 64 KiB: no parece un fichero de configuración"),
    ],
)
def test_files_that_are_not_configuration_are_refused(tmp_path: Path, content: bytes, expected: str) -> None:
    path = tmp_path / "x.yaml"
    path.write_bytes(content)
    node, (problem,) = read_file(path)
    assert node is None
    assert f"{problem.where}: {problem.message}" == f"{path}{expected}"


def test_utf8_with_a_byte_order_mark_is_accepted(tmp_path: Path) -> None:
    path = tmp_path / "x.yaml"
    path.write_bytes("a: ñ\r\nb: 2\r\n".encode("utf-8-sig"))
    node, problems = read_file(path)
    assert not problems
    assert node is not None
    assert node.plain() == {"a": "ñ", "b": 2}


def test_unreadable_paths_are_problems(tmp_path: Path) -> None:
    for path, reason in (
        (tmp_path, "es una carpeta"),
        (tmp_path / "nada.yaml", "no existe"),
        (tmp_path / "x\0.yaml", "el nombre no es válido o el sistema no deja abrirlo"),
        (tmp_path / ("x" * 300), "el nombre no es válido o el sistema no deja abrirlo"),
    ):
        node, (problem,) = read_file(path)
        assert node is None
        assert problem.message == f"no se puede leer: {reason}"
        assert problem.where.isprintable()


@given(st.text(alphabet=st.characters(exclude_categories=()), max_size=40))
def test_any_text_gives_a_tree_or_problems(text: str) -> None:
    node, problems = read_value(text, "prueba", ("a",))
    assert not (node and problems)
    assert all(problem.where == "prueba" and problem.message.isprintable() for problem in problems)
