"""Varios procesos entrenan lo mismo que uno, guardan lo mismo y se paran juntos.

Cada proceso es un `fork` con las variables que pone torchrun; una prueba lo lanza de verdad.
"""

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor
from torch._dynamo.exc import TorchDynamoException

from enlace.config import dump
from enlace.config.schema import Run
from enlace.durable import read_log, verify
from enlace.errors import ConfigError, UsageError, guard, render
from enlace.train.checkpoint import list_checkpoints
from enlace.train.processes import VARIABLES, joined, launched
from enlace.train.train import train
from tests.crash.forks import IGNORE_FORK_WARNING, start_child, wait_for
from tests.tiny import tiny_run

pytestmark = pytest.mark.filterwarnings(IGNORE_FORK_WARNING)
STEPS = 12
MUON = {"momentum": 0.95, "ns_steps": 5}
PARALLEL = ("replicate", "shard")
EXACT = ("model.safetensors", "optimizer.safetensors")


@pytest.fixture(autouse=True)
def one_thread() -> None:
    # Con un hilo no hay hilos de OpenMP que un fork dejaría a medias.
    torch.set_num_threads(1)


def make_run(root: Path, name: str, **changes: Any) -> Run:
    """Dos pasadas por proceso con dos procesos; Muon en las matrices."""
    defaults = {"hardware__micro_batch_tokens": 32, "train__optimizer__muon": MUON, "train__steps": STEPS}
    return tiny_run(root, name=name, **{**defaults, **changes})


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def start_processes(runs: list[Run], log: Path, *, resume: str | None = None) -> list[int]:
    """Un proceso por corrida de la lista (la misma, salvo en las pruebas que las cambian); sus pid."""
    port = free_port()

    def one(rank: int) -> None:
        with log.open("ab") as file:
            os.dup2(file.fileno(), sys.stdout.fileno())
            os.dup2(file.fileno(), sys.stderr.fileno())
        values = (rank, len(runs), rank, len(runs))
        os.environ |= {name: str(value) for name, value in zip(VARIABLES, values, strict=True)}
        os.environ |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}
        os._exit(guard(lambda: train(runs[rank], resume=resume)))

    return [start_child(lambda rank=rank: one(rank)) for rank in range(len(runs))]


def train_with(count: int, run: Run, log: Path, *, resume: str | None = None) -> None:
    codes = [wait_for(child) for child in start_processes([run] * count, log, resume=resume)]
    assert codes == [0] * count, log.read_text()


def losses(run: Run) -> list[float]:
    return [float(line["loss"]) for line in read_log(Path(run.runs_dir) / run.name / "log.jsonl")]


def last_files(run: Run) -> dict[str, str]:
    """Las huellas de los pesos y del optimizador del último punto de control."""
    last = Path(run.runs_dir) / run.name / "checkpoints" / f"step-{run.train.steps:08d}"
    return {name: verify(last, "checkpoint").files[name].sha256 for name in EXACT}


def wait_for_step(run: Run, step: int) -> None:
    log = Path(run.runs_dir) / run.name / "log.jsonl"
    deadline = time.monotonic() + 60
    while not (log.exists() and log.read_bytes().count(b"\n") >= step):
        assert time.monotonic() < deadline, "los procesos no avanzan"
        time.sleep(0.002)


@pytest.mark.parametrize("changes", [{}, {"train__dropout": 0.2, "model__tie_embeddings": False}])
@pytest.mark.parametrize("parallel", PARALLEL)
def test_the_loss_curve_of_several_is_that_of_one(parallel: str, changes: dict[str, Any], tmp_path: Path) -> None:
    alone = make_run(tmp_path, "uno", **changes)
    assert train(alone)
    for count in (2, 4):
        run = make_run(tmp_path, f"de-{count}", hardware__parallel=parallel, **changes)
        train_with(count, run, tmp_path / "salida.log")
        assert losses(run) == pytest.approx(losses(alone), abs=1e-5)
        assert verify(Path(run.runs_dir) / run.name / "model", "model").files.keys() >= {"model.safetensors"}


@pytest.mark.parametrize("parallel", PARALLEL)
def test_processes_of_unequal_speed_pass_the_same_dry_batches(
    parallel: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = time.perf_counter
    # En el proceso 1, mil veces más lento, dos pasadas ya son demasiado; en el 0 se harían más.
    monkeypatch.setattr(time, "perf_counter", lambda: real() * (1000 if os.environ.get("RANK") == "1" else 1))
    run = make_run(tmp_path, "desiguales", hardware__parallel=parallel, hardware__process_timeout=10)
    train_with(2, run, tmp_path / "salida.log")


@pytest.mark.parametrize("parallel", PARALLEL)
def test_one_that_cannot_compile_trains_beside_one_that_can(
    parallel: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    failures = iter([TorchDynamoException("no hay compilador")])

    def compile_only_in_the_first(forward: Callable[..., Tensor], **_: object) -> Callable[..., Tensor]:
        def compiled(*arguments: Tensor) -> Tensor:
            if os.environ["RANK"] == "1" and (failure := next(failures, None)):
                raise failure
            return forward(*arguments)

        return compiled

    monkeypatch.setattr(torch, "compile", compile_only_in_the_first)
    run = make_run(
        tmp_path, "mezcla", hardware__parallel=parallel, hardware__compile=True, hardware__process_timeout=20
    )
    train_with(2, run, tmp_path / "salida.log")
    assert (tmp_path / "salida.log").read_text().count("no se puede compilar") == 1
    alone = make_run(tmp_path, "uno")
    assert train(alone)
    assert losses(run) == pytest.approx(losses(alone), abs=1e-5)


@pytest.mark.parametrize("parallel", PARALLEL)
def test_when_one_dies_all_stop_saying_so_and_resuming_equals_never_interrupted(parallel: str, tmp_path: Path) -> None:
    changes: dict[str, Any] = {"hardware__parallel": parallel, "train__checkpoints__asynchronous": True}
    whole = make_run(tmp_path, "entera", **changes)
    train_with(2, whole, tmp_path / "salida.log")
    for victim in (0, 1):
        run = make_run(tmp_path, f"rota-{victim}", **changes)
        log = tmp_path / f"rota-{victim}.log"
        children = start_processes([run] * 2, log)
        wait_for_step(run, 5)
        os.kill(children[victim], signal.SIGKILL)
        codes = [wait_for(child) for child in children]
        assert codes[victim] == -signal.SIGKILL
        assert codes[1 - victim] == 1
        assert "se ha perdido otro proceso de la corrida" in log.read_text()
        assert "Traceback" not in log.read_text()
        train_with(2, run, log, resume="auto")
        assert losses(run) == losses(whole)
        assert last_files(run) == last_files(whole)


@pytest.mark.parametrize(("before", "after"), [(2, 1), (1, 2), (4, 2)])
@pytest.mark.parametrize("parallel", PARALLEL)
def test_a_checkpoint_of_several_is_resumed_with_another_number(
    parallel: str, before: int, after: int, tmp_path: Path
) -> None:
    alone = make_run(tmp_path, "uno")
    assert train(alone)
    log = tmp_path / "salida.log"
    half = make_run(tmp_path, "mudada", hardware__parallel=parallel, train__steps=6, train__schedule__decay_steps=0)
    train_with(before, half, log)
    rest = make_run(tmp_path, "mudada", hardware__parallel=parallel)
    train_with(after, rest, log, resume="auto")
    assert losses(rest) == pytest.approx(losses(alone), abs=1e-5)
    assert f'environment.processes: "{before}" → "{after}"' in log.read_text()


def test_a_signal_to_any_process_stops_all_at_the_same_step_with_a_checkpoint(tmp_path: Path) -> None:
    run = make_run(tmp_path, "parada", train__steps=400, train__checkpoints__every=1000)
    log = tmp_path / "salida.log"
    children = start_processes([run] * 2, log)
    wait_for_step(run, 3)
    os.kill(children[1], signal.SIGTERM)
    assert [wait_for(child) for child in children] == [0, 0], log.read_text()
    steps = len(losses(run))
    assert 3 <= steps < 400
    assert [path.name for path in list_checkpoints(Path(run.runs_dir) / run.name / "checkpoints")] == [
        f"step-{steps:08d}"
    ]


def test_a_batch_that_does_not_split_evenly_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in zip(VARIABLES, "0303", strict=True):
        monkeypatch.setenv(name, value)
    with pytest.raises(ConfigError) as caught, joined(make_run(tmp_path, "desigual")):
        pass
    assert "4 secuencias no se reparten por igual entre 3 procesos" in render(caught.value)


@pytest.mark.parametrize("values", ["0", "12", "012", "x202", "0000", "2202", "0211"])
def test_variables_that_make_no_sense_are_refused_and_not_taken_for_one_process(
    values: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in zip(VARIABLES, values, strict=False):
        monkeypatch.setenv(name, value)
    with pytest.raises(UsageError) as caught:
        launched()
    assert "RANK=" in caught.value.where and "torchrun" in caught.value.fix


def test_processes_with_another_recipe_are_refused_naming_the_difference(tmp_path: Path) -> None:
    runs = [make_run(tmp_path, "distinta"), make_run(tmp_path, "distinta", train__seed=8)]
    log = tmp_path / "salida.log"
    codes = [wait_for(child) for child in start_processes(runs, log)]
    assert codes[1] == ConfigError.exit_code
    assert codes[0] != 0
    assert "config.train.seed" in log.read_text()


def torchrun(*arguments: str) -> subprocess.CompletedProcess[str]:
    launcher = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
    command = [*launcher, "-m", "enlace.train.train", *arguments]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    return subprocess.run(command, capture_output=True, text=True, env=environment, timeout=100, check=False)


def test_torchrun_itself_trains_and_its_checkpoints_hold_no_pickle(tmp_path: Path) -> None:
    changes: dict[str, Any] = {"train__steps": 3, "train__schedule__warmup_steps": 1, "train__schedule__decay_steps": 0}
    run = make_run(tmp_path, "torchrun", hardware__parallel="shard", **changes)
    config = tmp_path / "torchrun.yaml"
    config.write_text(dump(run), encoding="utf-8")
    done = torchrun(str(config))
    assert done.returncode == 0, done.stderr
    assert json.loads((tmp_path / "runs/torchrun/plan.json").read_text())["processes"] == 2
    checkpoint = list_checkpoints(tmp_path / "runs/torchrun/checkpoints")[-1]
    assert {path.suffix for path in checkpoint.iterdir()} == {".safetensors", ".json"}


@pytest.mark.parametrize("parallel", PARALLEL)
def test_the_estimate_of_several_is_said_once_and_is_theirs(parallel: str, tmp_path: Path) -> None:
    run = make_run(tmp_path, "plan", hardware__parallel=parallel)
    config = tmp_path / "plan.yaml"
    config.write_text(dump(run), encoding="utf-8")
    done = torchrun(str(config), "--estimate")
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("pasadas reales") == 1
    assert "2 por paso en cada uno de los 2 procesos" in done.stdout
    assert not (tmp_path / "runs").exists()


def test_another_patience_with_the_others_is_the_same_run_to_the_bit(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    half = make_run(tmp_path, "paciente", train__steps=6, train__schedule__decay_steps=0)
    assert train(half)
    assert train(make_run(tmp_path, "paciente", hardware__process_timeout=61), resume="auto")
    assert "no será exacta" not in capsys.readouterr().err
