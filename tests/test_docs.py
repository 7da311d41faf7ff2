"""La documentación no miente: sus órdenes se pueden escribir, sus ficheros existen y sus promesas tienen prueba."""

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import click
import pytest
from torch.distributed.run import get_args_parser as torchrun_parser

from enlace.cli.app import app
from enlace.config import find_run, load_run
from enlace.errors import EnlaceError

ROOT = Path(__file__).parents[1]
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
BLOCK = re.compile(r"^```(?:bash|sh|console)\n(.*?)^```", re.MULTILINE | re.DOTALL)
# También las que se nombran de pasada o en un bloque de texto, con sus VARIABLES=… delante y en la misma línea.
INLINE = re.compile(r"`((?:\.venv/bin/)?enlace [a-z][^`\n]*|\.venv/bin/python -m [^`\n]+|scripts/\w+\.sh[^`\n]*)`")
TEXT = re.compile(r"^(?:[A-Z_]+=\S+ )*((?:\.venv/bin/enlace|scripts/\w+\.sh)(?: .*)?)$", re.MULTILINE)
LINK = re.compile(r"\]\(([^)#\s]+)[^)]*\)")
QUOTED_PATH = re.compile(r"`((?:enlace|configs|scripts|tests|docs|\.ci|\.github)/[\w./-]+\.\w+)`")
PROMISE = re.compile(r"`(tests/[\w/]+\.py)::(\w+)`")
TREE = re.compile(r"^```text\nenlace/\n(.*?)^```", re.MULTILINE | re.DOTALL)
# Un párrafo, un punto de lista o una fila; lo que da por pendiente todavía no tiene que existir.
ITEM = re.compile(r"\n(?=- |\||\n)")
PENDING = re.compile(r"pendiente|\*\*Falta\*\*")
SHELL = {"cd", "git", "export", "sudo", "eval", "tmux", "cat", "less", "tail", "source"}
# Órdenes que ni entrenan ni tardan: además de entenderse, se ejecutan.
CHEAP = (("doctor",), ("config", "show"), ("config", "check"), ("completion",), ("--help",), ("--version",))
DOCTOR_CODES = {0, 3}


@dataclass(frozen=True)
class Shown:
    """Una orden tal como se enseña en una página; named: de pasada, quizá sin sus argumentos."""

    page: str
    text: str
    named: bool = False

    def __str__(self) -> str:
        return f"{self.page}: {self.text}"

    @property
    def words(self) -> list[str]:
        return shlex.split(self.text, comments=True)

    @property
    def enlace(self) -> list[str] | None:
        """Los argumentos de `enlace`, si lo que se enseña es una orden de `enlace`."""
        program, *arguments = self.words
        return arguments if program in ("enlace", ".venv/bin/enlace") else None


def commands_in(page: str, text: str) -> Iterator[Shown]:
    for block in BLOCK.findall(text):
        for line in block.replace("\\\n", " ").splitlines():
            command = line.strip().removeprefix("$ ")
            if command and not command.startswith("#"):
                yield Shown(page, command)
    for item in ITEM.split(BLOCK.sub("", text)):
        if not PENDING.search(item):
            yield from (Shown(page, command, named=True) for command in INLINE.findall(item))
            yield from (Shown(page, command) for command in TEXT.findall(item))


COMMANDS = [shown for page in PAGES for shown in commands_in(page.relative_to(ROOT).as_posix(), page.read_text())]


def parse(arguments: list[str], *, named: bool) -> None:
    """Lo analiza click como si se ejecutara, sin ejecutarlo. Levanta UsageError si no se entiende."""
    command: click.Command = app
    context: click.Context | None = None
    rest = list(arguments)
    try:
        while True:
            context = command.make_context(command.name, rest, parent=context)
            if not isinstance(command, click.Group):
                return check_run(command, context.params)
            _, found, rest = command.resolve_command(context, [*context._protected_args, *context.args])
            assert found is not None
            command = found
    except click.exceptions.Exit:
        return  # --help, --version
    except (click.MissingParameter, click.exceptions.NoArgsIsHelpError):
        if not named:
            raise


def check_run(command: click.Command, values: dict[str, object]) -> None:
    """La corrida existe y los cambios que se enseñan son válidos."""
    if isinstance(run := values.get("run"), str):
        overrides = values.get("overrides", ())
        assert isinstance(overrides, tuple)
        load_run(find_run(run), overrides)


def check_words(shown: Shown) -> None:
    program, *rest = shown.words
    if program in SHELL:
        return
    if shown.enlace is not None:
        parse(shown.enlace, named=shown.named)
    elif program == ".venv/bin/python" and rest[0].startswith("bench/"):
        source = (ROOT / rest[0]).read_text()
        assert [word for word in rest[1:] if word.startswith("--") and f'"{word}"' not in source] == [], shown
    elif program == ".venv/bin/python":
        assert rest[0] == "-m", shown
        if rest[1] == "enlace.train.train":
            parse(["train", *rest[2:]], named=shown.named)
    elif program == ".venv/bin/torchrun":
        launched = torchrun_parser().parse_args(rest)
        assert launched.module and launched.training_script == "enlace.train.train", shown
        parse(["train", *launched.training_script_args], named=shown.named)
    else:
        path = ROOT / program
        assert path.is_file() and os.access(path, os.X_OK), f"no existe o no es ejecutable: {program}"
        unknown = [
            word for word in rest if word.startswith("--") and word != "--" and f"{word})" not in path.read_text()
        ]
        assert unknown == [], f"{program} no tiene {unknown}"


def test_there_are_commands_to_check() -> None:
    assert {"README.md", "README.en.md", "CONTRIBUTING.md"} <= {shown.page for shown in COMMANDS}
    assert {"scripts/quickstart.sh", "scripts/test.sh"} <= {shown.text for shown in COMMANDS}


@pytest.mark.parametrize("shown", COMMANDS, ids=str)
def test_every_command_can_be_typed(shown: Shown, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    check_words(shown)


@pytest.mark.parametrize(
    "text",
    [
        "enlace train",
        "enlace trian smoke-cpu",
        "enlace train smoke-cpu --deprisa",
        "enlace train no-existe",
        "enlace train smoke-cpu train.pasos=3",
        "python entrena.py",
        "scripts/no-existe.sh",
        "scripts/test.sh --largo",
        ".venv/bin/python bench/quality.py --deprisa",
        ".venv/bin/python -m enlace.train.train no-existe",
        ".venv/bin/torchrun --nproc-per-node 2 -m enlace.train.train no-existe",
        ".venv/bin/torchrun --nproc-per-node 2 enlace/train/train.py smoke-cpu",
    ],
)
def test_a_wrong_command_would_be_caught(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    (shown,) = commands_in("prueba", f"```bash\n{text}\n```\n")
    with pytest.raises((click.UsageError, EnlaceError, AssertionError)):
        check_words(shown)


@pytest.mark.parametrize(
    "text", ["Usa `enlace trian`.", "Con `enlace train x --deprisa`.", "```text\nA=1 scripts/no.sh\n```"]
)
def test_a_wrong_command_named_in_passing_would_be_caught_too(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    (shown,) = commands_in("prueba", text)
    with pytest.raises((click.UsageError, AssertionError)):
        check_words(shown)


def cheap_commands() -> list[Shown]:
    seen = {tuple(shown.enlace): shown for shown in COMMANDS if shown.enlace is not None}
    return [shown for words, shown in seen.items() if any(words[: len(cheap)] == cheap for cheap in CHEAP)]


@pytest.mark.parametrize("shown", cheap_commands(), ids=str)
def test_cheap_commands_work(shown: Shown) -> None:
    program = Path(sys.executable).with_name("enlace")
    done = subprocess.run([program, *(shown.enlace or [])], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode in (DOCTOR_CODES if shown.enlace == ["doctor"] else {0}), done.stderr
    assert done.stdout


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_links_and_named_files_exist(page: Path) -> None:
    text = page.read_text()
    links = [page.parent / target for target in LINK.findall(text) if "://" not in target]
    written = "\n".join(item for item in ITEM.split(text) if not PENDING.search(item))
    named = [ROOT / target for target in QUOTED_PATH.findall(written)]
    assert [str(path) for path in [*links, *named] if not path.exists()] == []


def test_the_tree_in_the_readme_is_the_real_one() -> None:
    tree = TREE.search((ROOT / "README.md").read_text())
    assert tree
    shown = set(re.findall(r"^  (\w+)/", tree.group(1), re.MULTILINE))
    real = {path.parent.name for path in (ROOT / "enlace").glob("*/__init__.py")}
    assert shown == real


def test_every_promise_names_a_test_that_exists() -> None:
    promises = [promise for page in PAGES for promise in PROMISE.findall(page.read_text())]
    missing = [
        f"{file}::{test}"
        for file, test in promises
        if not (ROOT / file).is_file() or f"def {test}(" not in (ROOT / file).read_text()
    ]
    assert promises
    assert missing == []
