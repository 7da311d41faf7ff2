"""Quién gana cuando varios ficheros dicen cosas distintas, y de dónde sale cada valor."""

from collections.abc import Callable
from pathlib import Path

import pytest

from enlace.config import find_run, load_run
from enlace.errors import NotFoundError

Put = Callable[[str, str], Path]
Edit = Callable[[str, str, str], None]


def test_later_wins_base_run_then_layers_then_run_then_command_line(configs: Path, put: Put) -> None:
    put("train/corta", "include: smoke\nsteps: 500\nseed: 2\noptimizer:\n  beta1: 0.8\n")
    run = put(
        "runs/mia",
        "include:\n  run: smoke-cpu\n  train: corta\ntrain:\n  seed: 3\n  dropout: 0.1\nsample:\n  seed: 7\n",
    )
    loaded = load_run(run, ["train.dropout=0.2"])
    train = loaded.run.train
    assert (train.steps, train.seed, train.dropout) == (500, 3, 0.2)
    assert (train.optimizer.beta1, train.optimizer.beta2) == (0.8, 0.98)
    assert (loaded.run.model.vocab_size, loaded.run.sample.seed) == (288, 7)
    origins = {key: str(origin) for key, origin in loaded.origins.items()}
    assert origins["train.optimizer.beta1"] == "configs/train/corta.yaml:5"
    assert origins["train.steps"] == "configs/train/corta.yaml:2"
    assert origins["train.seed"] == "configs/runs/mia.yaml:5"
    assert origins["train.dropout"] == "línea de órdenes «train.dropout=0.2»"
    assert origins["model.vocab_size"].startswith("configs/runs/smoke-cpu.yaml:")
    assert origins["data.sources.0.path"] == "configs/data/smoke.yaml:6"


def test_a_layer_chosen_by_the_run_covers_the_sections_of_its_base(configs: Path, put: Put) -> None:
    run = put("runs/mia", "include:\n  run: smoke-cpu\n  model: nano\ndata:\n  kind: shards\n")
    assert load_run(run).run.model.vocab_size == 4096


def test_lists_replace_and_mappings_merge(configs: Path, put: Put) -> None:
    run = put(
        "runs/mia",
        "include:\n  run: smoke-cpu\ndata:\n  sources:\n    - {name: a, path: x, weight: 2}\n    - name: b\n"
        "      path: y\n      weight: 1\n",
    )
    loaded = load_run(run)
    assert [source.name for source in loaded.run.data.sources] == ["a", "b"]
    assert loaded.run.data.kind == "bytes"
    assert str(loaded.origins["data.sources.1.path"]) == "configs/runs/mia.yaml:7"


def test_the_name_is_the_file_stem_and_is_not_inherited(configs: Path, put: Put, edit: Edit) -> None:
    edit("runs/smoke-cpu", "runs_dir: runs", "runs_dir: runs\nname: otro")
    assert load_run(configs / "runs/smoke-cpu.yaml").run.name == "otro"
    loaded = load_run(configs / "runs/smoke-2060.yaml")
    assert loaded.run.name == "smoke-2060"
    assert str(loaded.origins["name"]) == "configs/runs/smoke-2060.yaml"


def test_a_layer_in_the_command_line_covers_even_the_sections_of_the_run(configs: Path, edit: Edit) -> None:
    edit("runs/smoke-cpu", "runs_dir: runs", "runs_dir: runs\nhardware:\n  threads: 5\n  board: mía")
    path = configs / "runs/smoke-cpu.yaml"
    assert load_run(path).run.hardware.board == "mía"
    hardware = load_run(path, ["hardware.threads=3", "include.hardware=turing-2060"]).run.hardware
    assert (hardware.board, hardware.dtype, hardware.threads) == ("RTX 2060 12 GB", "float16", 3)


def test_override_values_are_yaml(configs: Path) -> None:
    overrides = ["train.checkpoints.keep_steps=[3, 5]", "sample.prompt='a=b: c'", "train.z_loss=1e-5", "runs_dir=22:30"]
    run = load_run(configs / "runs/smoke-cpu.yaml", overrides).run
    assert run.train.checkpoints.keep_steps == [3, 5]
    assert (run.sample.prompt, run.train.z_loss, run.runs_dir) == ("a=b: c", 1e-5, "22:30")


def test_a_run_outside_the_runs_folder_takes_its_layers_from_configs(configs: Path) -> None:
    text = (configs / "runs/smoke-cpu.yaml").read_text(encoding="utf-8")
    Path("mia.yaml").write_text(text, encoding="utf-8")
    assert load_run(Path("mia.yaml")).run.name == "mia"


def test_a_run_is_found_by_name_or_by_path(configs: Path) -> None:
    expected = configs / "runs/smoke-cpu.yaml"
    assert find_run("smoke-cpu") == find_run("configs/runs/smoke-cpu.yaml") == expected
    with pytest.raises(NotFoundError) as caught:
        find_run("smoke-cpi")
    assert "«smoke-cpu»" in caught.value.fix


@pytest.mark.parametrize("name", ["", "x" * 5000, "a\0b", "../../nada", "\udc80", "configs", "configs/runs"])
def test_a_strange_name_is_simply_not_found(configs: Path, name: str) -> None:
    with pytest.raises(NotFoundError):
        find_run(name)
