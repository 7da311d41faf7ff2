"""scripts/quickstart.sh: de unos textos a un modelo que escribe, sin teclear nada, y otra vez sin rehacerlo."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.tiny import SENTENCES

ROOT = Path(__file__).parents[2]
# La misma corrida que la de verdad, más corta.
SHORT = (
    "hardware.compile=false",
    "train.steps=6",
    "train.sequence_length=64",
    "train.batch_size=2",
    "train.schedule.warmup_steps=1",
    "train.schedule.decay_steps=2",
    "train.checkpoints.every=3",
    "train.evaluation.every=3",
    "train.evaluation.sequences=2",
    "model.n_layers=1",
    "sample.max_new_tokens=20",
)


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    """Un clon en una carpeta con espacios y tildes, ya instalado: lo que hace setup.sh se prueba aparte."""
    clone = tmp_path / "mi año nuevo"
    for folder in ("scripts", "configs"):
        shutil.copytree(ROOT / folder, clone / folder)
    (clone / "scripts" / "setup.sh").write_text("#!/bin/sh\n")
    (clone / ".venv").symlink_to(sys.prefix, target_is_directory=True)
    return clone


@pytest.fixture
def texts(tmp_path: Path) -> Path:
    folder = tmp_path / "mis textos"
    folder.mkdir()
    for i in range(40):
        (folder / f"{i}.txt").write_text("\n\n".join(f"{i}.{j} {SENTENCES[(i + j) % 4]}" for j in range(40)))
    return folder


def quickstart(clone: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [clone / "scripts" / "quickstart.sh", *arguments],
        cwd=clone.parent,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )


def test_trains_reports_and_writes_and_can_be_repeated(clone: Path, texts: Path) -> None:
    first = quickstart(clone, texts.name, "--", *SHORT)
    assert first.returncode == 0, first.stderr
    run = clone / "runs" / "smoke-cpu"
    assert (run / "model" / "model.safetensors").is_file()
    assert (run / "informe.html").is_file()
    for figure in ("| entrenamiento | ", "| validación | ", " bits por byte", " tokens/s |"):
        assert figure in first.stdout
    assert "modelo: runs/smoke-cpu/model\ninforme: runs/smoke-cpu/informe.html\n" in first.stdout
    log = (run / "log.jsonl").read_bytes()

    second = quickstart(clone, texts.name, "--", *SHORT)
    assert second.returncode == 0, second.stderr
    assert (run / "log.jsonl").read_bytes() == log, "no debía volver a entrenar"


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["no-existe"], 5),
        (["mis", "textos"], 2),
        (["--rehacer"], 2),
        (["train.steps=6"], 2),
        (["--", "train.stps=6"], 4),
    ],
)
def test_a_badly_written_order_is_said_in_clear_before_touching_anything(
    clone: Path, arguments: list[str], code: int
) -> None:
    done = quickstart(clone, *arguments)
    assert done.returncode == code
    assert [line.split(":")[0] for line in done.stderr.splitlines()[-4:]] == ["error", "dónde", "por qué", "pista"]
    assert not (clone / "data").exists()
