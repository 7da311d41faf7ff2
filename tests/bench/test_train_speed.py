"""bench/train_speed.py: todos los sistemas dan el mismo paso, y la tabla sale de lo medido."""

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest
import torch

from tests.tiny import tiny_run

BENCH = Path(__file__).parents[2] / "bench" / "train_speed.py"


@pytest.fixture(scope="module")
def bench() -> ModuleType:
    spec = importlib.util.spec_from_file_location("bench_train_speed", BENCH)
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("number", range(5))
def test_every_system_trains(bench: ModuleType, number: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    updates = []
    real = torch.optim.AdamW.step

    def noted(self: torch.optim.AdamW, *arguments: object) -> object:
        gradients = [parameter.grad for group in self.param_groups for parameter in group["params"]]
        updates.append(all(gradient is not None and gradient.isfinite().all() for gradient in gradients))
        return real(self, *arguments)

    monkeypatch.setattr(torch.optim.AdamW, "step", noted)
    run = tiny_run(tmp_path, hardware__attention="flash")
    ids_BT = torch.randint(0, 288, (2, 33), generator=torch.Generator().manual_seed(0))
    bench.build_step(bench.SYSTEMS[number], run, ids_BT)()
    assert updates == [True]


def test_whole_logits_give_the_loss_of_the_chunked_one(bench: ModuleType, tmp_path: Path) -> None:
    run = tiny_run(tmp_path, hardware__attention="flash")
    ids_BT = torch.randint(0, 288, (2, 33), generator=torch.Generator().manual_seed(0))
    losses = [bench.build_loss(system, run, ids_BT)[1]().item() for system in (bench.ENLACE, bench.WHOLE_LOGITS)]
    assert losses[0] == pytest.approx(losses[1], rel=1e-5)


def test_processes_answer_in_turn(bench: ModuleType) -> None:
    with bench.workers([bench.GEMM], "mini", 1) as asks:
        assert all(asks[bench.GEMM]()[0] > 1e8 for _ in range(2))


def test_the_table_ranks_nothing_it_did_not_measure(bench: ModuleType) -> None:
    row = {
        "tokens_per_second": 1234.5,
        "ratio": 1.25,
        "share_of_gemm": 0.625,
        "peak_bytes": 2**30,
        "first_step_seconds": 2.04,
    }
    shown = bench.table({"model": "mini", "gemm_flops": 1e11, "systems": {"enlace": row}})
    assert "### mini · GEMM 100 GFLOP/s" in shown
    assert "| enlace | 1234 | 1,25 | 62 % | 1024 MiB | 2,0 s |" in shown
