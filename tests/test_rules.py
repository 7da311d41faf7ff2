"""Las reglas de la casa que se pueden comprobar leyendo el código (CONTRIBUTING.md las explica)."""

import ast
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "enlace"
MODULES = sorted(PACKAGE.rglob("*.py"))
ROOMS = sorted(path.parent for path in PACKAGE.rglob("__init__.py"))
PYTHON = [*MODULES, *sorted((ROOT / "tests").rglob("*.py"))]

KNOW_BOARDS = {"train/backends.py", "config/schema/hardware.py"}
BOARD_WORDS = re.compile(r"cuda|sm_\d|bfloat16|capability")
WRITING_METHODS = {"write_text", "write_bytes", "savez", "savetxt", "tofile", "save_file", "symlink_to", "hardlink_to"}
WRITING_CALLS = {
    "torch.save",
    "numpy.save",
    "np.save",
    "os.open",
    "os.rename",
    "os.replace",
    "os.truncate",
    "shutil.move",
}
UNSAFE_MODULES = {"pickle", "cPickle", "dill", "marshal", "shelve", "joblib"}
PROCESS_CALLS = {"os.system", "os.popen", "os.execv", "os.execvp", "os.spawnv", "pty.spawn"}
# `socket` no: quien solo mira el nombre de la máquina puede importarlo.
NETWORK_MODULES = {"ssl", "httpx2", "httpcore2", "http", "requests", "ftplib", "smtplib", "aiohttp"}
NETWORK_CALLS = {"socket.socket", "socket.create_connection", "urllib.request.urlopen", "urlopen", "fetch_url"}
MAX_FILE_LINES = 600
MAX_LOOP_LINES = 300
MAX_FUNCTION_LINES = 60


def name_of(path: Path) -> str:
    return path.relative_to(PACKAGE).as_posix()


def room_of(path: Path) -> str:
    return name_of(path).split("/")[0]


def dotted(node: ast.expr) -> str:
    """`torch.save` a partir de su árbol; cadena vacía si no es un nombre con puntos."""
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute) and (owner := dotted(node.value)):
        return f"{owner}.{node.attr}"
    return ""


def calls(tree: ast.AST) -> Iterator[ast.Call]:
    return (node for node in ast.walk(tree) if isinstance(node, ast.Call))


def imports(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name.split(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module.split(".")[0]


def mentions_boards(source: str) -> list[int]:
    return [number for number, line in enumerate(source.splitlines(), 1) if BOARD_WORDS.search(line)]


def runs_unsafe_code(source: str, room: str) -> list[int]:
    """Deserializar objetos o ejecutar texto. `yaml.load` solo puede llamarlo config, con su cargador."""
    tree = ast.parse(source)
    found = [1 for name in imports(tree) if name in UNSAFE_MODULES]
    for call in calls(tree):
        name = dotted(call.func)
        keywords = {keyword.arg for keyword in call.keywords}
        own_loader = room == "config" and (len(call.args) > 1 or "Loader" in keywords)
        if name in {"eval", "exec", "torch.load"} or "shell" in keywords or (name == "yaml.load" and not own_loader):
            found.append(call.lineno)
    return found


def writes_files(source: str) -> list[int]:
    return [call.lineno for call in calls(ast.parse(source)) if _writes(call)]


def _writes(call: ast.Call) -> bool:
    name = dotted(call.func)
    method = call.func.attr if isinstance(call.func, ast.Attribute) else ""
    if "open" in (name, method):
        return _opens_to_write(call, name)
    return name in WRITING_CALLS or method in WRITING_METHODS


def _opens_to_write(call: ast.Call, name: str) -> bool:
    position = 1 if name == "open" else 0
    given = call.args[position : position + 1] + [k.value for k in call.keywords if k.arg == "mode"]
    return any(not isinstance(mode, ast.Constant) or set("wax+") & set(str(mode.value)) for mode in given)


def speaks_sql(source: str) -> list[int]:
    return [1 for name in imports(ast.parse(source)) if name in {"sqlite3", "apsw"}]


def opens_connections(source: str) -> list[int]:
    tree = ast.parse(source)
    found = [1 for name in imports(tree) if name in NETWORK_MODULES]
    return found + [call.lineno for call in calls(tree) if dotted(call.func) in NETWORK_CALLS]


def starts_processes(source: str) -> list[int]:
    tree = ast.parse(source)
    found = [1 for name in imports(tree) if name in {"subprocess", "pty"}]
    return found + [call.lineno for call in calls(tree) if dotted(call.func) in PROCESS_CALLS]


def offenders(rule: object, *allowed: str) -> list[str]:
    assert callable(rule)
    return [
        f"{name_of(path)}:{line}"
        for path in MODULES
        if name_of(path) not in allowed and room_of(path) not in allowed
        for line in rule(path.read_text())
    ]


def test_only_backends_and_the_hardware_schema_know_boards() -> None:
    assert offenders(mentions_boards, *KNOW_BOARDS) == []


def test_nothing_deserialises_objects_or_runs_text() -> None:
    found = {name_of(path): runs_unsafe_code(path.read_text(), room_of(path)) for path in MODULES}
    assert {name: lines for name, lines in found.items() if lines} == {}


def test_only_durable_writes_files() -> None:
    assert offenders(writes_files, "durable") == []


def test_only_the_command_line_starts_processes() -> None:
    assert offenders(starts_processes, "cli") == []


def test_only_the_store_speaks_sql() -> None:
    assert offenders(speaks_sql, "store") == []


def test_only_the_guarded_client_opens_connections() -> None:
    doors = [name_of(path) for path in MODULES if name_of(path).startswith("agent/web/")]
    assert doors
    assert offenders(opens_connections, *doors) == []


@pytest.mark.parametrize(
    ("rule", "source"),
    [
        (speaks_sql, "import sqlite3"),
        (speaks_sql, "from sqlite3 import connect"),
        (opens_connections, "import httpx2"),
        (opens_connections, "from urllib.request import urlopen\nurlopen('http://x')"),
        (opens_connections, "import socket\nsocket.create_connection(('x', 80))"),
        (mentions_boards, "device = 'cuda:0'"),
        (mentions_boards, "# compilado para sm_75"),
        (lambda source: runs_unsafe_code(source, "config"), "import pickle"),
        (lambda source: runs_unsafe_code(source, "config"), "yaml.load(text)"),
        (lambda source: runs_unsafe_code(source, "data"), "yaml.load(text, Loader=Mine)"),
        (lambda source: runs_unsafe_code(source, "data"), "torch.load(path)"),
        (lambda source: runs_unsafe_code(source, "data"), "eval('1')"),
        (lambda source: runs_unsafe_code(source, "cli"), "run('ls', shell=True)"),
        (writes_files, "open(path, 'w')"),
        (writes_files, "open(path, mode=mode)"),
        (writes_files, "path.open('ab')"),
        (writes_files, "path.write_text('')"),
        (writes_files, "torch.save(x, path)"),
        (starts_processes, "import subprocess"),
        (starts_processes, "os.system('ls')"),
    ],
)
def test_each_rule_catches_what_it_forbids(rule: object, source: str) -> None:
    assert callable(rule)
    assert rule(source)


@pytest.mark.parametrize("source", ["open(path)", "open(path, 'rb')", "path.open()", "path.open('r')", "model.eval()"])
def test_reading_and_evaluating_a_model_are_allowed(source: str) -> None:
    assert not writes_files(source)
    assert not runs_unsafe_code(source, "data")


def test_files_and_functions_stay_small() -> None:
    long_files = [str(path) for path in PYTHON if len(path.read_text().splitlines()) > MAX_FILE_LINES]
    long_functions = [
        f"{name_of(path)}:{node.name}"
        for path in MODULES
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and (node.end_lineno or 0) - node.lineno + 1 > MAX_FUNCTION_LINES
    ]
    assert (long_files, long_functions) == ([], [])


def test_the_training_loop_fits_in_one_sitting() -> None:
    assert len((PACKAGE / "train" / "train.py").read_text().splitlines()) <= MAX_LOOP_LINES


def test_every_folder_with_modules_is_a_room() -> None:
    assert {path.parent for path in MODULES} == set(ROOMS)


@pytest.mark.parametrize("room", ROOMS, ids=lambda room: room.name)
def test_every_room_opens_with_one_sentence_in_spanish(room: Path) -> None:
    docstring = ast.get_docstring(ast.parse((room / "__init__.py").read_text())) or ""
    sentence = " ".join(docstring.split("\n\n")[0].split())
    assert re.fullmatch(r"[^.]+(\.\S[^.]*)*\.", sentence), f"{room.name}: una frase, con su punto: {sentence!r}"
    assert re.search(r"\b(el|la|los|las|un|una|de|que|y|en|con|lo|se)\b", sentence), sentence


@pytest.mark.parametrize("path", MODULES, ids=name_of)
def test_every_module_says_what_it_is(path: Path) -> None:
    assert ast.get_docstring(ast.parse(path.read_text()))


def tracked_texts() -> Iterator[tuple[str, str]]:
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    for name in listed.split("\0"):
        path = ROOT / name
        if name and path.is_file() and b"\0" not in (content := path.read_bytes()):
            yield name, content.decode()


@pytest.mark.skipif(not (ROOT / ".git").exists(), reason="no es un clon de git: no hay lista de ficheros")
def test_no_tracked_file_has_machine_paths_or_emails() -> None:
    personal = re.compile(r"(?<![\w.~-])/(home|root|Users|work|opt|mnt|media)/|[\w.+-]+@[\w-]+(\.[a-z]+)+\b", re.ASCII)
    found = [
        f"{name}:{number}: {line.strip()}"
        for name, text in tracked_texts()
        for number, line in enumerate(text.splitlines(), 1)
        if personal.search(line)
    ]
    assert found == []


def lint_imports(folder: Path) -> subprocess.CompletedProcess[str]:
    program = Path(sys.executable).with_name("lint-imports")
    return subprocess.run(
        [program, "--no-logo", "--no-cache"],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": str(folder), "COLUMNS": "200"},
    )


def test_imports_respect_the_floors() -> None:
    done = lint_imports(ROOT)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize(
    ("room", "code", "report"),
    [
        ("agent/planted", "import torch", "enlace.agent.planted -> torch"),
        ("snapshots", "import enlace.train.schedule", "enlace.snapshots is not allowed to import enlace.train"),
        ("zoo", "", "- enlace.zoo"),
        ("config/planted", "import enlace.durable", "enlace.config.planted -> enlace.durable"),
        ("data/planted", "import enlace.train.schedule", "enlace.data.planted -> enlace.train.schedule"),
        ("infer/planted", "import enlace.train.schedule", "enlace.infer.planted -> enlace.train.schedule"),
    ],
)
def test_a_planted_import_is_reported_by_name(tmp_path: Path, room: str, code: str, report: str) -> None:
    shutil.copytree(PACKAGE, tmp_path / "enlace", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    planted = tmp_path / "enlace" / room
    planted.mkdir()
    (planted / "__init__.py").write_text(f'"""Plantado por la prueba."""\n{code}\n')
    done = lint_imports(tmp_path)
    assert done.returncode != 0
    assert report in done.stdout
