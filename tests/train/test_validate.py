"""La validación: lo que no se puede medir se sabe antes de empezar, y lo no finito no estropea la corrida."""

import math
from collections.abc import Callable
from pathlib import Path

import pytest

from enlace.durable import read_json, read_log
from enlace.errors import ConfigError
from enlace.train import advance as advance_module
from enlace.train.state import TrainingState
from enlace.train.train import train
from tests.tiny import tiny_run


def write_greetings(folder: Path) -> list[dict[str, object]]:
    """Una fuente con tan poco texto que su validación no da ni una secuencia."""
    path = folder / "saludos.jsonl"
    path.write_text("\n".join(f'{{"id":"{i}","text":"hola, soy el {i}"}}' for i in range(12)))
    return [{"name": "saludos", "path": str(path), "weight": 1.0}]


def test_validation_shorter_than_a_sequence_is_refused_before_the_first_step(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="no es válida") as caught:
        train(tiny_run(tmp_path, data__sources=write_greetings(tmp_path)))
    assert "sube data.validation_fraction" in str(caught.value.problems[0])
    assert read_log(tmp_path / "runs" / "diminuta" / "log.jsonl") == []


def test_without_validation_the_run_finishes_and_says_it_was_not_measured(tmp_path: Path) -> None:
    assert train(tiny_run(tmp_path, data__validation_fraction=0.0))
    report = (tmp_path / "runs" / "diminuta" / "informe.md").read_text(encoding="utf-8")
    assert "| validación | sin medir |" in report


@pytest.fixture
def first_is_not_finite(monkeypatch: pytest.MonkeyPatch) -> None:
    """La primera validación da NaN, como un desborde de float16; las demás son las de verdad."""
    real: Callable[[TrainingState], float | None] = advance_module.validation_bits_per_byte
    scores = iter([math.nan])
    monkeypatch.setattr(advance_module, "validation_bits_per_byte", lambda state: next(scores, None) or real(state))


def test_a_non_finite_validation_is_logged_and_never_the_best(tmp_path: Path, first_is_not_finite: None) -> None:
    run = tiny_run(tmp_path, train__checkpoints__keep_best=True, train__checkpoints__keep_last=99)
    assert train(run)
    run_dir = Path(run.runs_dir) / run.name
    validations = [line["validation"] for line in read_log(run_dir / "log.jsonl") if "validation" in line]
    assert validations[0] == "nan" and all(isinstance(score, float) for score in validations[1:])
    first, last = (read_json(run_dir / "checkpoints" / f"step-{step:08d}" / "state.json") for step in (3, 12))
    assert isinstance(first, dict) and isinstance(last, dict)
    assert first["validation"] is None
    assert last["counters"]["best"]["bits_per_byte"] == min(validations[1:])  # type: ignore[index,call-overload,type-var]
