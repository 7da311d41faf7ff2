"""La estimación: aritmética conocida, memoria que se parece a la real y tiempo con su procedencia."""

from pathlib import Path

import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

from enlace.config import find_run, load_run
from enlace.config.schema import Run
from enlace.model import Transformer
from enlace.train.estimate import estimate_run, render_estimate
from enlace.train.muon import orthogonalize_all
from enlace.train.optim import build_optimizers, state_tensors
from enlace.train.train import estimate_only
from tests.tiny import tiny_run


def shipped(name: str) -> Run:
    return load_run(find_run(name)).run


def test_flops_are_six_per_matrix_parameter_plus_attention(tmp_path: Path) -> None:
    run = tiny_run(tmp_path)
    plan = estimate_run(run, peak_flops=None, measured_pass=None)
    matrices = 2 * (2 * 32 * (4 + 2) * 8 + 3 * 32 * 64) + 288 * 32
    assert plan.matmul_parameters == matrices
    assert plan.flops_per_token == 6 * matrices + 12 * 2 * 4 * 8 * 32
    assert plan.flops == plan.flops_per_token * 12 * 4 * 32


def test_adamw_weighs_twice_the_weights(tmp_path: Path) -> None:
    memory = estimate_run(tiny_run(tmp_path), peak_flops=None, measured_pass=None).memory
    assert memory.optimizer == 2 * memory.weights == 2 * memory.gradients


def test_muon_weighs_what_its_state_weighs(tmp_path: Path) -> None:
    run = tiny_run(tmp_path, train__optimizer__muon={"momentum": 0.95, "ns_steps": 5})
    plan = estimate_run(run, peak_flops=None, measured_pass=None)
    model = Transformer(run.model)
    optimizers = build_optimizers(model, run.train.optimizer, muon_dtype=torch.float32)
    state = state_tensors(optimizers, model.named_parameters())
    assert plan.memory.optimizer == sum(tensor.nbytes for tensor in state.values() if tensor.ndim)


def test_muon_takes_its_time_too(tmp_path: Path) -> None:
    run = tiny_run(tmp_path, train__optimizer__muon={"momentum": 0.95, "ns_steps": 5})
    plan = estimate_run(run, peak_flops=None, measured_pass=0.5)
    matrices = [torch.zeros(shape) for shape in 2 * [(32, 32), (16, 32), (16, 32), (32, 32), *3 * [(64, 32)]]]
    with FlopCounterMode(display=False) as counter:
        orthogonalize_all(matrices, 5, torch.float32)
    passes = 0.5 * run.accumulation() * run.train.steps
    assert plan.seconds == pytest.approx(passes * (1 + counter.get_total_flops() * run.train.steps / plan.flops))


def test_several_processes_share_the_passes_and_if_sharded_the_memory(tmp_path: Path) -> None:
    run = tiny_run(tmp_path, hardware__micro_batch_tokens=32, hardware__parallel="shard")
    alone = estimate_run(run, peak_flops=None, measured_pass=0.5)
    plan = estimate_run(run, peak_flops=None, measured_pass=0.5, processes=2)
    assert (alone.seconds, plan.seconds) == (24.0, 12.0)
    assert plan.memory.optimizer == alone.memory.optimizer // 2
    assert "en cada uno de los 2 procesos" in render_estimate(run, plan)


def test_disk_counts_the_kept_ones_plus_the_one_being_written_plus_the_model(tmp_path: Path) -> None:
    plan = estimate_run(tiny_run(tmp_path), peak_flops=None, measured_pass=None)
    assert plan.checkpoint_bytes == 12 * plan.parameters
    assert plan.disk_bytes == 3 * plan.checkpoint_bytes + 4 * plan.parameters


def test_time_comes_from_measured_passes_when_there_are(tmp_path: Path) -> None:
    run = tiny_run(tmp_path, hardware__micro_batch_tokens=32)
    plan = estimate_run(run, peak_flops=1e12, measured_pass=0.5)
    assert plan.seconds == 0.5 * 4 * 12
    assert "reales" in plan.source


def test_time_of_an_absent_board_comes_from_its_peak_and_says_so() -> None:
    run = load_run(find_run("pretrain-5090"), ["train.optimizer.muon=null"]).run
    plan = estimate_only(run)
    expected = plan.flops / (209.5e12 * run.hardware.expected_mfu)
    assert plan.seconds == pytest.approx(expected, rel=1e-3)
    assert "sin medir" in plan.source


def test_an_unknown_board_says_unknown(tmp_path: Path) -> None:
    plan = estimate_run(tiny_run(tmp_path), peak_flops=None, measured_pass=None)
    assert plan.seconds is None
    assert "desconocido" in render_estimate(tiny_run(tmp_path), plan)


def test_a_present_device_is_calibrated_with_real_passes(tmp_path: Path) -> None:
    assert estimate_only(tiny_run(tmp_path)).source.startswith("pasadas reales")
