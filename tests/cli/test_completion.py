"""El autocompletado de la terminal propone órdenes, opciones y corridas."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from enlace.cli import main

PROGRAM = Path(sys.executable).with_name("enlace")


def complete(words: str, folder: Path) -> list[str]:
    """Lo que la terminal propondría tras escribir eso, preguntado como lo hace bash."""
    environment = {
        **os.environ,
        "_ENLACE_COMPLETE": "bash_complete",
        "COMP_WORDS": words,
        "COMP_CWORD": str(len(words.split(" ")) - 1),
    }
    done = subprocess.run([PROGRAM], capture_output=True, text=True, env=environment, cwd=folder, check=True)
    return [line.split(",")[1] for line in done.stdout.splitlines()]


@pytest.fixture
def project(tmp_path: Path) -> Path:
    runs = tmp_path / "configs" / "runs"
    runs.mkdir(parents=True)
    for name in ("smoke-cpu", "smoke-2060", "pretrain-cpu"):
        (runs / f"{name}.yaml").touch()
    (tmp_path / "runs" / "smoke-mia" / "model").mkdir(parents=True)
    (tmp_path / "runs" / "smoke-a-medias" / "checkpoints").mkdir(parents=True)
    return tmp_path


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_writes_a_script_that_asks_enlace(shell: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["completion", shell]) == 0
    assert "_ENLACE_COMPLETE" in capsys.readouterr().out


def test_the_bash_script_is_valid(capsys: pytest.CaptureFixture[str]) -> None:
    main(["completion", "bash"])
    subprocess.run(["bash", "-n"], input=capsys.readouterr().out, text=True, check=True)


def test_proposes_commands(project: Path) -> None:
    assert complete("enlace co", project) == ["completion", "config", "corpus"]


@pytest.mark.parametrize("command", ["train", "config show"])
def test_proposes_the_runs_that_there_are(command: str, project: Path) -> None:
    assert complete(f"enlace {command} smoke", project) == ["smoke-2060", "smoke-cpu"]


def test_proposes_only_what_has_finished_training(project: Path) -> None:
    assert complete("enlace generate smoke", project) == ["smoke-mia"]


def test_proposes_files_when_no_run_matches(project: Path) -> None:
    done = complete("enlace train ./", project)
    assert done == ["./"]


def test_proposes_options(project: Path) -> None:
    assert complete("enlace train x --es", project) == ["--estimate"]
