"""Lo que se enseña de una configuración y lo que se guarda con cada corrida."""

from pathlib import Path

from enlace.config import dump, explain, load_run


def test_the_dump_loads_back_to_the_same_run_anywhere(configs: Path) -> None:
    run = load_run(configs / "runs/smoke-2060.yaml", ["train.seed=99", "sample.prompt='3e-4'"]).run
    resolved = Path("config.yaml")
    resolved.write_text(dump(run), encoding="utf-8")
    assert load_run(resolved).run == run


def test_the_dump_quotes_only_what_yaml_12_would_misread(configs: Path) -> None:
    run = load_run(
        configs / "runs/smoke-cpu.yaml", ["sample.prompt='3e-4'", "runs_dir=22:30", "hardware.board='no'"]
    ).run
    lines = dump(run).splitlines()
    assert "  prompt: '3e-4'" in lines
    assert "  board: no" in lines
    assert "  eps: 1.0e-08" in [line[2:] for line in lines]


def test_explain_aligns_every_value_with_its_origin(configs: Path) -> None:
    overrides = ["train.seed=99", "train.checkpoints.keep_steps=[3, 5]", "sample.prompt='a\u0301\n'"]
    lines = explain(load_run(configs / "runs/smoke-2060.yaml", overrides)).splitlines()
    assert len({line.index("←") for line in lines}) == 1
    shown = [" ".join(line.split()) for line in lines]
    assert "name = 'smoke-2060' ← configs/runs/smoke-2060.yaml" in shown
    assert "hardware.grad_scaler = true ← configs/hardware/turing-2060.yaml:7" in shown
    assert "train.seed = 99 ← línea de órdenes «train.seed=99»" in shown
    assert "train.checkpoints.keep_steps.1 = 5 ← línea de órdenes «train.checkpoints.keep_steps=[3, 5]»" in shown
    assert "data.sources.0.path = 'data/smoke' ← configs/data/smoke.yaml:6" in shown
