"""Cada puerta, con entradas buenas estropeadas al azar y con los casos que alguna vez la rompieron."""

import random
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.hostile.targets import TARGETS, seeds

CASES = sorted(path for path in (Path(__file__).parent / "cases").iterdir() if not path.name.startswith("."))
ROUNDS = {"yaml": 40, "shard": 40, "model_config": 60, "model_weights": 60}
FEW, MANY = 150, 3000
# Lo que un analizador confunde: cifras, signos, límites, escapes, controles y trozos de los propios formatos.
PIECES = [
    b"",
    b"0",
    b"-1",
    b"9" * 400,
    b"1e999",
    b"NaN",
    b"true",
    b"null",
    b'"',
    b"\\ud800",
    b"\0",
    b"\xff",
    b"\x1b[31m",
]
PIECES += [b"[" * 300, b"]", b'{"a":', b"}", b",", b":", b"\n", b"&a ", b"*a", b"!!int ", b"F64", b"\xff" * 8, b"../"]

edits = st.lists(
    st.tuples(st.integers(0, 1 << 20), st.integers(0, 30), st.sampled_from(PIECES) | st.binary(max_size=9)), max_size=6
)


def spoiled(seed: bytes, changes: list[tuple[int, int, bytes]]) -> bytes:
    """La entrada con unos cuantos trozos sustituidos: (dónde, cuántos bytes, por qué)."""
    for at, length, piece in changes:
        at %= len(seed) + 1
        seed = seed[:at] + piece + seed[at + length :]
    return seed


@pytest.mark.parametrize("name", TARGETS)
def test_nothing_but_a_clear_error_escapes(name: str, tmp_path: Path, long_run: bool) -> None:
    good = seeds(name)

    @settings(
        max_examples=MANY if long_run else ROUNDS.get(name, FEW),
        deadline=5000,
        suppress_health_check=[HealthCheck.too_slow],
        database=None,
    )
    @given(st.sampled_from(good), edits)
    def check(seed: bytes, changes: list[tuple[int, int, bytes]]) -> None:
        TARGETS[name](tmp_path, spoiled(seed, changes))

    check()


@pytest.mark.parametrize("name", TARGETS)
def test_random_bytes_are_refused(name: str, tmp_path: Path) -> None:
    generator = random.Random(7)
    for size in (0, 1, 7, 8, 9, 100, 5000):
        TARGETS[name](tmp_path, generator.randbytes(size))


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_what_once_broke_a_door_no_longer_does(case: Path, tmp_path: Path) -> None:
    TARGETS[case.name.partition("-")[0]](tmp_path, case.read_bytes())
