"""Cada código de salida, con la orden de verdad y en la situación que lo da."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from enlace.cli import main
from enlace.durable import lock
from tests.tiny import tiny_run

PROGRAM = Path(sys.executable).with_name("enlace")


def write_config(root: Path, **changes: object) -> str:
    path = root / "corrida.yaml"
    path.write_text(tiny_run(root, **changes).model_dump_json())
    return str(path)


def test_0_done(tmp_path: Path) -> None:
    assert main(["train", write_config(tmp_path), "--estimate"]) == 0


def test_1_failed_with_a_clear_message(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    config = write_config(
        tmp_path, train__optimizer__learning_rate=1e30, train__anomalies__max_consecutive=1, train__z_loss=0.0
    )
    assert main(["train", config]) == 1
    assert "no se recupera sola" in capsys.readouterr().err


def test_2_badly_written(tmp_path: Path) -> None:
    assert main(["train", write_config(tmp_path), "--deprisa"]) == 2


def test_3_the_machine_lacks_something(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    config = write_config(tmp_path, train__tensorboard=True)
    code = "import sys; sys.modules['torch.utils.tensorboard'] = None\n" + (
        "from enlace.cli import main; sys.exit(main(sys.argv[1:]))"
    )
    done = subprocess.run([sys.executable, "-c", code, "train", config], capture_output=True, text=True)
    assert done.returncode == 3, done.stderr
    assert "pista: scripts/setup.sh --tensorboard" in done.stderr


def test_4_the_configuration_is_not_valid(tmp_path: Path) -> None:
    assert main(["train", write_config(tmp_path), "train.steps=muchos"]) == 4


def test_5_it_does_not_exist(tmp_path: Path) -> None:
    assert main(["train", str(tmp_path / "no-existe.yaml")]) == 5


def test_6_another_process_has_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    config = write_config(tmp_path)
    run_dir = tmp_path / "runs" / "diminuta"
    run_dir.mkdir(parents=True)
    with lock(run_dir / ".lock"):
        assert main(["train", config]) == 6
    assert str(os.getpid()) in capsys.readouterr().err


def test_7_the_data_are_not_what_was_written(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    config = write_config(tmp_path)
    assert main(["train", config]) == 0
    checkpoint = tmp_path / "runs" / "diminuta" / "checkpoints" / "step-00000012"
    (checkpoint / "rng.safetensors").write_bytes(b"")
    capsys.readouterr()
    assert main(["train", config, "--resume", str(checkpoint)]) == 7
    assert "rng.safetensors" in capsys.readouterr().err


def test_8_no_memory(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["train", write_config(tmp_path, model__d_model=2**20, model__n_layers=1000)]) == 8
    assert "no cabe en memoria" in capsys.readouterr().err


def test_9_refused_for_safety(tmp_path: Path) -> None:
    """Hoy solo lo da la preparación del texto, que no borra una carpeta ajena."""
    texts, target = tmp_path / "textos", tmp_path / "ajena"
    for folder in (texts, target):
        folder.mkdir()
        for name in ("uno.txt", "dos.txt"):
            (folder / name).write_text("Había una vez un texto bastante largo como para contar.\n" * 20)
    command = [sys.executable, "-m", "enlace.corpus.smoke", "carpeta", str(texts), str(target), "--rehacer"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 9, done.stderr
    assert len(list(target.iterdir())) == 2


def test_130_the_second_interruption_stops_at_once_without_saving(tmp_path: Path) -> None:
    # Pasos de segundos: la segunda señal llega mientras se termina el paso que pidió la primera.
    config = write_config(tmp_path, train__batch_size=4096, train__schedule__decay_steps=0)
    run_dir = tmp_path / "runs" / "diminuta"
    with (
        (tmp_path / "salida").open("w") as output,
        subprocess.Popen([PROGRAM, "train", config], stderr=output) as process,
    ):
        deadline = time.monotonic() + 90
        log = run_dir / "log.jsonl"
        while not (log.exists() and log.stat().st_size) and time.monotonic() < deadline:
            time.sleep(0.01)
        for _ in range(2):
            process.send_signal(signal.SIGINT)
            time.sleep(0.2)
        assert process.wait(30) == 130
    assert (tmp_path / "salida").read_text().endswith("error: cancelado\n")
    assert list((run_dir / "checkpoints").iterdir()) == []
