"""JSON canónico y estricto."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from enlace.durable import Json, read_json, to_json
from enlace.durable.canonical import parse_json
from enlace.errors import CorruptDataError, NotFoundError

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
SCALARS = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | TEXT
VALUES = st.recursive(SCALARS, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXT, inner, max_size=4))


@given(VALUES)
def test_round_trip_is_exact_and_unique(value: Json) -> None:
    data = to_json(value)
    assert parse_json(data, "aquí") == value
    assert to_json(parse_json(data, "aquí")) == data


def test_writing_does_not_depend_on_key_order() -> None:
    assert to_json({"b": 1, "a": "ñ"}) == to_json({"a": "ñ", "b": 1}) == '{"a":"ñ","b":1}'.encode()


@pytest.mark.parametrize("value", [float("nan"), float("inf"), {"x": [-float("inf")]}, "\ud800"])
def test_what_json_lacks_is_not_written(value: Json) -> None:
    with pytest.raises(ValueError):
        to_json(value)


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"", "columna 1"),
        (b'{"a":1,\n"b"}', "línea 2"),
        (b'{"a":1,"a":2}', "repetida"),
        (b"[NaN]", "NaN"),
        (b"[1e999]", "1e999"),
        (b'"\xff"', "UTF-8"),
        (b'"\\ud800"', "medio carácter"),
        (b"[" * 100_000, "niveles"),
        (b"1" * 5_000, "5000 cifras"),
    ],
)
def test_bad_json_says_where_and_why(tmp_path: Path, data: bytes, why: str) -> None:
    path = tmp_path / "estado.json"
    path.write_bytes(data)
    with pytest.raises(CorruptDataError) as caught:
        read_json(path)
    assert caught.value.where == str(path)
    assert why in caught.value.why


@given(st.binary(max_size=40) | st.text(max_size=40).map(lambda text: text.encode("utf-8", "surrogatepass")))
def test_any_bytes_are_read_or_refused(data: bytes) -> None:
    try:
        value = parse_json(data, "aquí")
    except CorruptDataError:
        return
    assert json.loads(to_json(value)) == value


def test_missing_file_is_not_found(tmp_path: Path) -> None:
    with pytest.raises(NotFoundError):
        read_json(tmp_path / "no-está.json")
