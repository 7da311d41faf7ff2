"""Un paso: acumular no cambia el resultado, y lo no finito se salta, se cuenta y no estropea los pesos."""

import math
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from enlace.durable import AppendLog, read_log
from enlace.errors import EnlaceError
from enlace.train import step as step_module
from enlace.train.backends import open_backend
from enlace.train.state import TrainingState
from enlace.train.step import accumulate_gradients, optimizer_step
from enlace.train.train import build_state, train
from tests.tiny import tiny_run

FLOAT16 = {"hardware__dtype": "float16", "hardware__grad_scaler": True}


def make_state(root: Path, **changes: Any) -> TrainingState:
    run = tiny_run(root, **changes)
    with closing(AppendLog(root / "log.jsonl")) as log:
        return build_state(run, open_backend(run.hardware, seed=run.train.seed), root / "corrida", log)


def gradients(state: TrainingState) -> list[Tensor]:
    return [parameter.grad.clone() for parameter in state.model.parameters() if parameter.grad is not None]


def weights(state: TrainingState) -> list[Tensor]:
    return [parameter.detach().clone() for parameter in state.model.parameters()]


def same(left: list[Tensor], right: list[Tensor]) -> bool:
    return all(torch.equal(a, b) for a, b in zip(left, right, strict=True))


@pytest.fixture
def poison(monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[int, str]]:
    """Veneno por número de pasada: «pérdida» la vuelve NaN; «gradiente», infinito solo hacia atrás."""
    plan: dict[int, str] = {}
    real, passes = step_module.forward_loss, 0

    def poisoned(*arguments: Any) -> tuple[Tensor, Tensor]:
        nonlocal passes
        passes += 1
        nll, z_loss = real(*arguments)
        if plan.get(passes) == "pérdida":
            return nll + math.nan, z_loss
        if plan.get(passes) == "gradiente":
            nll, z_loss = nll * 1.0, z_loss * 1.0
            nll.register_hook(lambda gradient: gradient * math.inf)
            z_loss.register_hook(lambda gradient: gradient * math.inf)
        return nll, z_loss

    monkeypatch.setattr(step_module, "forward_loss", poisoned)
    yield plan


def test_accumulating_gives_the_same_gradient_as_one_pass(tmp_path: Path) -> None:
    whole = make_state(tmp_path)
    batch = whole.data.train.batch(0, 4, 32, 7)
    loss, z_loss = accumulate_gradients(whole, batch)
    split = make_state(tmp_path, hardware__micro_batch_tokens=32)
    assert split.run.accumulation() == 4
    assert accumulate_gradients(split, batch) == pytest.approx((loss, z_loss), rel=1e-6)
    for left, right in zip(gradients(whole), gradients(split), strict=True):
        torch.testing.assert_close(left, right, rtol=1e-4, atol=1e-6)


def test_the_loss_is_nats_per_token_of_a_uniform_guess_at_birth(tmp_path: Path) -> None:
    state = make_state(tmp_path)
    loss, _ = accumulate_gradients(state, state.data.train.batch(0, 4, 32, 7))
    assert loss == pytest.approx(math.log(288), abs=0.1)


@pytest.mark.parametrize(("kind", "reason"), [("pérdida", "pérdida no finita"), ("gradiente", "gradiente no finito")])
def test_a_non_finite_step_is_skipped_without_touching_weights(
    kind: str, reason: str, tmp_path: Path, poison: dict[int, str]
) -> None:
    state = make_state(tmp_path)
    optimizer_step(state)
    before = weights(state)
    poison[2] = kind
    result = optimizer_step(state)
    assert result.skipped == reason and result.anomalous
    assert same(before, weights(state))
    assert optimizer_step(state).skipped is None
    assert not same(before, weights(state))
    assert all(bool(w.isfinite().all()) for w in weights(state))


def test_under_float16_an_overflow_halves_the_scale_and_is_not_an_anomaly(
    tmp_path: Path, poison: dict[int, str]
) -> None:
    state = make_state(tmp_path, **FLOAT16)
    assert optimizer_step(state).skipped is None
    before, scale = weights(state), state.scaler.get_scale()
    poison[2] = "gradiente"
    result = optimizer_step(state)
    assert (result.skipped, result.anomalous) == ("escala", False)
    assert state.scaler.get_scale() == scale / 2
    assert same(before, weights(state))
    assert optimizer_step(state).skipped is None


def test_under_float16_an_overflow_at_the_smallest_scale_is_an_anomaly(tmp_path: Path, poison: dict[int, str]) -> None:
    state = make_state(tmp_path, **FLOAT16)
    optimizer_step(state)
    state.scaler.load_state_dict(state.scaler.state_dict() | {"scale": 1.0})
    poison[2] = "gradiente"
    assert optimizer_step(state).anomalous


@pytest.mark.parametrize("changes", [{}, FLOAT16])
def test_isolated_anomalies_are_counted_and_the_run_finishes(
    changes: dict[str, Any], tmp_path: Path, poison: dict[int, str]
) -> None:
    poison.update({3: "pérdida", 7: "pérdida"})
    run = tiny_run(tmp_path, **changes)
    assert train(run)
    log = read_log(Path(run.runs_dir) / run.name / "log.jsonl")
    skipped = {line["step"]: line["skipped"] for line in log if line["skipped"]}
    assert skipped == {3: "pérdida no finita", 7: "pérdida no finita"}
    assert log[2]["loss"] == "nan"
    report = (Path(run.runs_dir) / run.name / "informe.md").read_text()
    assert "saltado: pérdida no finita" in report


def test_too_many_anomalies_in_a_row_stop_the_run_naming_the_last_good_checkpoint(
    tmp_path: Path, poison: dict[int, str]
) -> None:
    poison.update(dict.fromkeys(range(5, 99), "pérdida"))
    with pytest.raises(EnlaceError) as caught:
        train(tiny_run(tmp_path))
    assert "3 pasos seguidos" in caught.value.what
    assert "step-00000006" in caught.value.fix
    assert caught.value.where.startswith("paso 7")
    run_dir = tmp_path / "runs" / "diminuta"
    assert read_log(run_dir / "log.jsonl")[-1]["step"] == 7
    assert "pasos saltados seguidos" in str(read_log(run_dir / "events.jsonl")[-1]["event"])


def test_anomalies_below_the_limit_do_not_add_up_across_good_steps(tmp_path: Path, poison: dict[int, str]) -> None:
    poison.update(dict.fromkeys((2, 3, 5, 6, 8, 9), "pérdida"))
    assert train(tiny_run(tmp_path))
