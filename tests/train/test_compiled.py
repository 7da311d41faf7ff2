"""Bloques compilados: los mismos pesos, ninguna compilación a mitad de corrida y, sin compilador, sin compilar."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch

from enlace.config import dump
from enlace.config.schema import Run
from enlace.durable import read_log, verify
from enlace.errors import InstallationError
from enlace.model import Transformer
from enlace.train.compiled import cache_folder, compile_blocks, forget
from enlace.train.train import train
from tests.tiny import tiny_run

# Entrena y dice cuántos grafos compiló y cuántas veces después del lote de prueba.
PROGRAM = """
import json, sys
from pathlib import Path
from torch._dynamo.utils import counters
from enlace.config import load_run
from enlace.train import train as module

real, seen = module.dry_batch, {}
def noted(*arguments):
    result = real(*arguments)
    seen["before"] = dict(counters["stats"])
    return result
module.dry_batch = noted
module.forget = lambda cache: None  # para no compilar otra vez al seguir
for path in sys.argv[1:]:
    resume = "auto" if path.startswith("+") else None
    assert module.train(load_run(Path(path.removeprefix("+"))).run, resume=resume)
print(json.dumps([seen["before"], dict(counters["stats"])]))
"""


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("cache")


def execute(cache: Path, *configs: str, **environment: str) -> subprocess.CompletedProcess[str]:
    variables = {**os.environ, "XDG_CACHE_HOME": str(cache), "OMP_NUM_THREADS": "1", **environment}
    command = [sys.executable, "-c", PROGRAM, *configs]
    return subprocess.run(command, env=variables, capture_output=True, text=True, timeout=300, check=False)


def write(root: Path, **changes: Any) -> tuple[Run, str]:
    settings = {"hardware__compile": True, "train__evaluation__sequences": 3, "hardware__attention": "flash"}
    run = tiny_run(root, **{**settings, **changes})
    path = root / f"{run.name}-{run.train.steps}-{run.hardware.compile}.yaml"
    path.write_text(dump(run), encoding="utf-8")
    return run, str(path)


def losses(run: Run) -> list[float]:
    return [float(line["loss"]) for line in read_log(Path(run.runs_dir) / run.name / "log.jsonl")]


def weights(run: Run) -> str:
    last = Path(run.runs_dir) / run.name / "checkpoints" / f"step-{run.train.steps:08d}"
    return verify(last, "checkpoint").files["model.safetensors"].sha256


SPACES = pytest.mark.skipif(" " in torch.__file__, reason="torch no sabe compilar desde una carpeta con espacios")


@SPACES
@pytest.mark.timeout(600)
def test_compiled_trains_resumes_and_swaps_with_uncompiled(cache: Path, tmp_path: Path) -> None:
    half = {"train__steps": 6, "train__schedule__decay_steps": 0}
    _, cut = write(tmp_path, name="cortada", **half)
    _, plain = write(tmp_path, name="mixta", **half)
    whole, whole_path = write(tmp_path, name="entera")
    done = execute(cache, cut, plain, whole_path)
    assert done.returncode == 0, done.stderr
    before, after = json.loads(done.stdout)
    assert before["unique_graphs"] == 1, "un grafo para todos los bloques"
    assert after == before, "se compiló algo después del lote de prueba"

    # Otro proceso sigue las dos mitades: una compilada, al bit; la otra sin compilar, salvo el redondeo.
    rest, rest_path = write(tmp_path, name="cortada")
    mixed, mixed_path = write(tmp_path, name="mixta", hardware__compile=False)
    done = execute(cache, f"+{rest_path}", f"+{mixed_path}")
    assert done.returncode == 0, done.stderr
    assert (losses(rest), weights(rest)) == (losses(whole), weights(whole))
    assert "hardware.compile: true → false" in done.stderr
    assert losses(mixed) == pytest.approx(losses(whole), abs=1e-4)

    kept = [path for path in cache.rglob("*") if path.is_file()]
    assert {path.suffix for path in kept} == {".cpp", ".so", ".py", ".lock"}, "hay una caché de más"
    assert not any(path.read_bytes().startswith(b"\x80") for path in kept), "hay pickle"


def test_without_a_compiler_it_warns_once_and_trains_uncompiled(tmp_path: Path) -> None:
    run, path = write(tmp_path, name="sin-compilador")
    nothing = tmp_path / "vacia"
    nothing.mkdir()
    done = execute(tmp_path / "cache", path, PATH=str(nothing), CXX="no-hay")
    assert done.returncode == 0, done.stderr
    assert done.stderr.count("no se puede compilar") == 1
    assert len(losses(run)) == run.train.steps


def test_from_a_folder_with_spaces_it_warns_and_trains_uncompiled(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(torch, "__file__", "/mi casa/torch/__init__.py")
    model = Transformer(tiny_run(tmp_path).model)
    compile_blocks(model, tmp_path / "cache")
    assert "desde una carpeta con espacios: /mi casa/torch" in capsys.readouterr().err
    assert not (tmp_path / "cache").exists()


def test_where_the_cache_cannot_be_written_it_warns_once_and_trains_uncompiled(tmp_path: Path) -> None:
    run, path = write(tmp_path, name="sin-cache")
    (tmp_path / "fichero").touch()
    done = execute(tmp_path / "fichero", path)
    assert done.returncode == 0, done.stderr
    assert done.stderr.count("no se puede compilar") == 1
    assert len(losses(run)) == run.train.steps


@pytest.fixture
def homeless(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Un usuario sin carpeta, como el de muchos servicios. tmp_path va antes: también mira de quién es."""
    monkeypatch.delenv("HOME", raising=False)
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setattr(os, "getuid", lambda: 2**31 - 5)


@pytest.mark.usefixtures("homeless")
def test_without_compiling_a_user_without_a_folder_trains(tmp_path: Path) -> None:
    assert train(tiny_run(tmp_path, hardware__compile=False))


@pytest.mark.usefixtures("homeless")
def test_a_user_without_a_folder_is_told_what_to_define(tmp_path: Path) -> None:
    with pytest.raises(InstallationError) as caught:
        cache_folder(tmp_path, 0)
    assert "XDG_CACHE_HOME" in caught.value.fix


def test_a_finished_run_leaves_nothing_compiled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    (folder := cache_folder(tmp_path, 0)).mkdir(parents=True)
    forget(folder)
    assert not folder.exists()
    forget(folder)


def test_the_cache_is_private_to_the_run_and_the_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "caché"))
    folders = {cache_folder(tmp_path / run, rank) for run in ("a", "b") for rank in (0, 1)}
    assert len(folders) == 4
    assert all(folder.is_relative_to(tmp_path / "caché") for folder in folders)
