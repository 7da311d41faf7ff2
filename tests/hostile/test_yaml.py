"""Configuraciones de un desconocido: ConfigError con fichero y línea, en tiempo con tope, sin abrir nada de fuera."""

import os
import shutil
import time
from itertools import pairwise
from pathlib import Path

import pytest

from enlace.config import check_all, load_run
from enlace.config.yaml12 import MAX_BYTES, read_file
from enlace.errors import ConfigError
from tests.hostile.targets import EXAMPLE

LAUGHS = "a: &a [x]\n" + "".join(f"{b}: &{b} [{f'*{a}, ' * 9}]\n" for a, b in pairwise("abcdefghi"))
NAMES = ["../../../etc/passwd", "/etc/passwd", "..", ".", "", "nano/../nano", "nano.yaml", "~", "a\\b", "%2e%2e"]
NAMES += ["nano\\0", "C:nano", "NANO", "ñ", "x" * 5000, "a\u202eb"]
SECONDS = 15  # en esta máquina, de sobra: lo peor se acerca a 3


@pytest.fixture
def run(tmp_path: Path) -> Path:
    shutil.copytree(EXAMPLE, tmp_path / "configs")
    return tmp_path / "configs" / "runs" / "smoke-2060.yaml"


def problems(run: Path, content: str | bytes) -> str:
    run.write_bytes(content if isinstance(content, bytes) else content.encode())
    begin = time.process_time()
    with pytest.raises(ConfigError) as caught:
        load_run(run)
    assert time.process_time() - begin < SECONDS
    assert all(problem.where.startswith(str(run.parents[1])) for problem in caught.value.problems)
    return "\n".join(map(str, caught.value.problems))


@pytest.mark.parametrize(
    ("content", "line", "message"),
    [
        (LAUGHS, 1, "anclas"),
        ("a: 1\nb: *a\n", 2, "alias"),
        ("a: &a\n  b: *a\n", 2, "alias"),
        ("\ntrain: !!python/object/apply:os.system ['id']\n", 2, "etiquetas"),
        ("\ntrain: !!python/name:os.system\n", 2, "etiquetas"),
        ("!<tag:yaml.org,2002:python/object/new:os.system> [id]\n", 1, "etiquetas"),
        ("%TAG ! tag:yaml.org,2002:python/\n---\na: !object 1\n", 3, "etiquetas"),
        ("train:\n  <<: {steps: 1}\n", 2, "clave desconocida"),
        ("a: " + "[" * 10_000, 1, "32 niveles"),
        ("a: " + "{a: " * 10_000, 1, "32 niveles"),
        ("".join(f"{' ' * depth}a:\n" for depth in range(300)), 34, "32 niveles"),
        ("- " * 10_000, 1, "32 niveles"),
        ("? " * 10_000, 1, "la clave tiene que ser una palabra"),
        ("a: 1\n\0b: 2\n", 2, "U+0000"),
        (b"a: 1\nb: \xff\n", 2, "UTF-8"),
        ("a: 1\n".encode("utf-16"), 1, "UTF-8"),
        (f"train:\n  steps: {'9' * 20_000}\n", 2, "64 bits"),
        ("train:\n  seed: 1e999\n", 2, "train.seed"),
        ("a: 1\na: 2\n", 2, "repetida"),
        ('runs_dir: "a\\0b"\n', 1, "«runs_dir»: una ruta no puede llevar el carácter U+0000"),
        ('data:\n  sources: [{path: "a\\0"}]\n', 2, "«data.sources.0.path»: una ruta no puede llevar"),
        ("hardware:\n  threads: 1000000000\n", 2, "«hardware.threads»: tiene que ser 1024 o menos"),
        ("---\n---\n", 2, "segundo documento"),
    ],
)
def test_each_trick_is_refused_with_its_line(run: Path, content: str | bytes, line: int, message: str) -> None:
    assert any(f"{run}:{line}: " in text and message in text for text in problems(run, content).splitlines())


BOMBS = {
    "keys": "".join(f"k{n:x}: 1\n" for n in range(7000)),
    "keys of a layer": "train:\n" + "".join(f" k{n:x}: 1\n" for n in range(6000)),
    "repeated key": "a: 1\n" * 13_000,
    "list": "a: [" + "1," * 32_000 + "]",
    "set": "a: {" + "a," * 32_000 + "}",
    "sources": "data:\n sources: [" + "{}," * 21_000 + "]",
    "open quote": "'" * 65_000,
    "long text": "name: " + "x" * 65_000,
    "tags": "!" * 65_000,
    "blank lines": "\n" * 65_000,
    "tabs": "\t" * 65_000,
}


@pytest.mark.parametrize("content", BOMBS.values(), ids=BOMBS.keys())
def test_the_worst_that_fits_takes_bounded_time(run: Path, content: str) -> None:
    assert len(content) <= MAX_BYTES
    assert problems(run, content)


def test_a_file_too_large_is_not_read(run: Path) -> None:
    with run.open("wb") as file:
        file.truncate(1 << 40)
    assert "64 KiB" in problems_of(run)


def problems_of(run: Path) -> str:
    with pytest.raises(ConfigError) as caught:
        load_run(run)
    return "\n".join(map(str, caught.value.problems))


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("layer", ["model", "run"])
def test_no_include_leaves_its_folder(run: Path, layer: str, name: str) -> None:
    text = problems(run, f'include:\n  {layer}: "{name}"\n' if "\\0" in name else f"include:\n  {layer}: '{name}'\n")
    assert "se esperaba el nombre de un fichero" in text and "root:" not in text


@pytest.mark.timeout(20)
@pytest.mark.parametrize("kind", ["pipe", "loop", "device", "folder"])
def test_an_included_thing_that_is_no_file_is_refused_without_blocking(run: Path, kind: str) -> None:
    strange = run.parents[1] / "model" / "rara.yaml"
    {
        "pipe": lambda: os.mkfifo(strange),
        "loop": lambda: strange.symlink_to(strange),
        "device": lambda: strange.symlink_to("/dev/zero"),
        "folder": strange.mkdir,
    }[kind]()
    assert f"{run}:2: " in problems(run, "include:\n  model: rara\n")
    with pytest.raises(ConfigError) as caught:
        check_all(run.parents[1])
    assert any(problem.where.startswith(str(strange)) for problem in caught.value.problems)
    assert read_file(strange)[0] is None


def test_files_that_include_each_other_are_refused(run: Path) -> None:
    folder = run.parents[1] / "model"
    for name, base in (("uno", "dos"), ("dos", "tres"), ("tres", "uno")):
        (folder / f"{name}.yaml").write_text(f"include: {base}\n")
    assert "en círculo" in problems(run, "include:\n  model: uno\n")


def test_a_chain_through_links_to_one_file_ends(run: Path) -> None:
    folder = run.parents[1] / "model"
    (folder / "uno.yaml").write_text("include: dos\n")
    (folder / "dos.yaml").symlink_to("uno.yaml")
    assert "en círculo" in problems(run, "include:\n  model: uno\n")


def test_what_is_quoted_is_not_the_whole_file(run: Path) -> None:
    assert max(map(len, problems(run, f"include:\n  model: {'x' * 60_000}\n").splitlines())) < 1000
