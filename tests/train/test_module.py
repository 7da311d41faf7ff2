"""La forma de módulo: códigos de salida, mensajes en español y nunca una traza."""

import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from enlace.train.train import main
from tests.tiny import tiny_run


def write_config(root: Path, **changes: object) -> Path:
    path = root / "corrida.yaml"
    path.write_text(tiny_run(root, **changes).model_dump_json())
    return path


def test_a_run_trains_and_exits_with_zero(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([str(write_config(tmp_path)), "train.steps=7", "train.schedule.decay_steps=0"]) == 0
    output = capsys.readouterr().err
    assert "bits por byte" in output and "tokens/s" in output and "informe" in output
    assert (tmp_path / "runs" / "diminuta" / "model" / "config.json").exists()


def test_overrides_may_come_after_options(tmp_path: Path) -> None:
    assert main([str(write_config(tmp_path)), "--resume", "auto", "train.steps=6"]) == 0
    assert len((tmp_path / "runs" / "diminuta" / "log.jsonl").read_text().splitlines()) == 6


def test_estimate_prints_the_plan_and_trains_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([str(write_config(tmp_path)), "--estimate"]) == 0
    plan = capsys.readouterr().out
    for label in ("parámetros", "cálculo", "memoria", "disco", "tiempo"):
        assert label in plan
    assert not (tmp_path / "runs").exists()


@pytest.mark.parametrize(
    ("arguments", "code", "text"),
    [
        (["no-existe"], 5, "no existe"),
        (["{run}", "train.stepz=3"], 4, "steps"),
        (["{run}", "train.steps=tres"], 4, "entero"),
        (["{run}", "train.seed=99999999999999999999"], 4, "train.seed"),
        (["{run}", "runs_dir={run}"], 1, "no se ha podido escribir"),
        (["{run}", "--resume", "otra/ruta"], 5, "punto de control"),
        (["{run}", "data.sources=[{name: x, path: no/esta, weight: 1.0}]"], 5, "no/esta"),
    ],
)
def test_mistakes_exit_with_their_code_and_no_traceback(
    arguments: list[str], code: int, text: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = str(write_config(tmp_path))
    assert main([argument.replace("{run}", run) for argument in arguments]) == code
    message = capsys.readouterr().err
    assert text in message and "Traceback" not in message and message.startswith("error: ")


def test_usage_errors_exit_with_two_in_spanish(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        main(["--nada"])
    assert caught.value.code == 2
    message = capsys.readouterr().err
    assert message.startswith("uso:") and "error" in message


def test_sigterm_exits_with_zero_and_the_command_to_go_on(tmp_path: Path) -> None:
    tmp_path = tmp_path / "mi carpeta"
    config = write_config(tmp_path, train__steps=100_000, train__checkpoints__every=100_000)
    log = tmp_path / "runs" / "diminuta" / "log.jsonl"
    command = [sys.executable, "-m", "enlace.train.train", str(config)]
    with (tmp_path / "salida").open("w") as output, subprocess.Popen(command, stderr=output) as process:
        deadline = time.monotonic() + 60
        while not (log.exists() and log.read_bytes().count(b"\n") > 3) and time.monotonic() < deadline:
            time.sleep(0.01)
        process.send_signal(signal.SIGTERM)
        assert process.wait(30) == 0
    message = (tmp_path / "salida").read_text()
    assert "se acaba el paso y se guarda" in message
    assert f"Para seguir: enlace train '{config}' --resume auto" in message
    steps = len(log.read_text().splitlines())
    assert (tmp_path / "runs" / "diminuta" / "checkpoints" / f"step-{steps:08d}").is_dir()


def test_tensorboard_gets_the_curves_when_asked(tmp_path: Path) -> None:
    pytest.importorskip("tensorboard", reason="NECESITA el extra tensorboard")
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    assert main([str(write_config(tmp_path)), "train.tensorboard=true"]) == 0
    events = EventAccumulator(str(tmp_path / "runs" / "diminuta" / "tensorboard")).Reload()
    log = [json.loads(line) for line in (tmp_path / "runs" / "diminuta" / "log.jsonl").read_text().splitlines()]
    assert [event.step for event in events.Scalars("loss")] == [line["step"] for line in log]
    assert events.Scalars("loss")[-1].value == pytest.approx(log[-1]["loss"])
