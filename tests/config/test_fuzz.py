"""Con cualquier cosa en cualquier fichero: una corrida válida o un ConfigError que dice dónde, y nada más."""

import json
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from enlace.config import dump, explain, load_run
from enlace.config.schema import Run
from enlace.config.validate import keys_of
from enlace.errors import ConfigError, render

EXAMPLE = Path(__file__).parent / "configs"
FILES = sorted(path.relative_to(EXAMPLE) for path in EXAMPLE.rglob("*.yaml"))
KEYS = sorted({part for key in keys_of(Run) for part in key.split(".")} | {"include", "run"})
LIKELY = ["nano", "cpu", "smoke-cpu", "smoke", "../runs/smoke-cpu", "x" * 300, "a\0b", "\x1b[31m", "ñ", "<<", "<", "*"]

any_text = st.text(alphabet=st.characters(exclude_categories=()), max_size=12)
scalars = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(), any_text, st.sampled_from(LIKELY), st.just(10**400)
)
keys = st.one_of(st.sampled_from(KEYS), any_text)
trees = st.recursive(
    scalars,
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(keys, inner, max_size=4)),
    max_leaves=8,
)
fragments = st.sampled_from(
    [
        "\n",
        "\n  ",
        "\t",
        ": ",
        "- ",
        "[",
        "]",
        "{",
        "}",
        "&a",
        "*a",
        "!!int ",
        "'",
        '"',
        "\\U",
        "---\n",
        "|",
        ">",
        "#",
        "%",
    ]
    + [f"{key}: " for key in KEYS]
)
texts = st.one_of(
    # Un árbol en JSON es YAML; con ensure_ascii, los sustitutos sueltos viajan como escapes.
    trees.map(json.dumps),
    st.lists(st.one_of(fragments, any_text, st.sampled_from(LIKELY)), max_size=12).map("".join),
    st.integers(1, 4000).map(lambda depth: "[" * depth),
    st.integers(1, 4000).map(lambda depth: "{a: " * depth),
    st.integers(1, 400).map(lambda depth: "".join(f"{' ' * level}a:\n" for level in range(depth))),
)
paths = st.lists(keys, min_size=1, max_size=4).map(".".join)
overrides = st.one_of(
    any_text,
    st.tuples(paths, texts).map("=".join),
    st.tuples(st.sampled_from(sorted(keys_of(Run))), texts).map("=".join),
)


@pytest.fixture(scope="module")
def folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as name:
        shutil.copytree(EXAMPLE, Path(name) / "configs")
        yield Path(name) / "configs"


def outcome(folder: Path, arguments: list[str]) -> None:
    """Carga la corrida y comprueba que lo que salga se puede leer."""
    try:
        loaded = load_run(folder / "runs" / "smoke-2060.yaml", arguments)
    except ConfigError as error:
        assert error.problems
        assert all(problem.where.startswith((str(folder), "línea de órdenes «")) for problem in error.problems)
        assert all(str(problem).isprintable() for problem in error.problems)
        render(error).encode()
    else:
        explain(loaded).encode()
        again = folder / "runs" / "otra.yaml"
        again.write_text(dump(loaded.run), encoding="utf-8")
        assert load_run(again).run == loaded.run


@settings(max_examples=300, deadline=None)
@given(name=st.sampled_from(FILES), text=texts, whole=st.booleans(), arguments=st.lists(overrides, max_size=2))
def test_any_text_in_any_file(folder: Path, name: Path, text: str, whole: bool, arguments: list[str]) -> None:
    path, original = folder / name, (EXAMPLE / name).read_bytes()
    path.write_bytes((b"" if whole else original + b"\n") + text.encode("utf-8", "surrogatepass"))
    try:
        outcome(folder, arguments)
    finally:
        path.write_bytes(original)


@settings(max_examples=200, deadline=None)
@given(name=st.sampled_from(FILES), content=st.binary(max_size=60), position=st.integers(0, 2000))
def test_any_bytes_in_any_place(folder: Path, name: Path, content: bytes, position: int) -> None:
    path, original = folder / name, (EXAMPLE / name).read_bytes()
    path.write_bytes(original[:position] + content + original[position:])
    try:
        outcome(folder, [])
    finally:
        path.write_bytes(original)


@settings(max_examples=300, deadline=None)
@given(key=st.sampled_from(sorted(keys_of(Run))), value=scalars, others=st.lists(overrides, max_size=2))
def test_any_value_for_any_key(folder: Path, key: str, value: object, others: list[str]) -> None:
    outcome(folder, [f"{key}={json.dumps(value)}", *others])


@settings(max_examples=200, deadline=None)
@given(prompt=st.text(max_size=30))
@example(prompt="\x85\u2028\ufeff\n \t")
def test_any_text_survives_the_dump(folder: Path, prompt: str) -> None:
    loaded = load_run(folder / "runs" / "smoke-cpu.yaml")
    sample = loaded.run.sample.model_copy(update={"prompt": prompt})
    run = loaded.run.model_copy(update={"sample": sample})
    path = folder / "runs" / "otra.yaml"
    path.write_text(dump(run), encoding="utf-8")
    assert load_run(path).run == run
