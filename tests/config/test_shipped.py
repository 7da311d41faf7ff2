"""Las configuraciones de serie: valen, se mudan de placa cambiando una capa y sus comentarios dicen la verdad."""

import json
import re
from pathlib import Path

import pytest

from enlace.config import check_all, json_schemas, load_run
from enlace.config.schema import LAYERS, Model

CONFIGS = Path(__file__).parents[2] / "configs"
RUNS = sorted((CONFIGS / "runs").glob("*.yaml"))
BOARDS = sorted(path.stem for path in (CONFIGS / "hardware").glob("*.yaml"))
EXPECTED = {
    "hardware": {"cpu", "turing-2060", "blackwell-5090", "h200"},
    "model": {"nano", "mini", "tiny-50m", "small-120m", "base-480m"},
    "runs": {"smoke-cpu", "smoke-2060", "pretrain-cpu", "pretrain-2060", "pretrain-5090", "pretrain-h200"},
}


def test_every_file_is_valid() -> None:
    files = check_all(CONFIGS)
    for folder, names in EXPECTED.items():
        assert names <= {file.stem for file in files if file.parent.name == folder}


@pytest.mark.parametrize("board", BOARDS)
@pytest.mark.parametrize("run", RUNS, ids=lambda path: path.stem)
def test_only_the_hardware_layer_changes_to_move_a_run(run: Path, board: str) -> None:
    before, after = load_run(run).run, load_run(run, [f"include.hardware={board}"]).run
    assert after == before.model_copy(update={"hardware": after.hardware})
    assert after.micro_batch_size() * after.accumulation() == after.train.batch_size


@pytest.mark.parametrize("path", sorted(CONFIGS.rglob("*.yaml")), ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_every_file_names_its_schema_for_editors(path: Path) -> None:
    kind = "run" if path.parent.name == "runs" else path.parent.name
    first = path.read_text(encoding="utf-8").splitlines()[0]
    assert first == f"# yaml-language-server: $schema=../schema/{kind}.json"
    assert (CONFIGS / "schema" / f"{kind}.json").is_file()


@pytest.mark.parametrize("path", RUNS, ids=lambda path: path.stem)
def test_every_run_opens_with_its_command_time_result_and_check(path: Path) -> None:
    lines = path.read_text(encoding="utf-8").splitlines()[1:5]
    assert [line.split(":")[0] for line in lines] == ["# Orden", "# Tiempo", "# Resultado", "# Verificado"]
    assert lines[0].endswith((f" enlace train {path.stem}", f" -m enlace.train.train {path.stem}"))


def parameters(model: Model) -> int:
    """Qwen3 denso con la cabeza atada: embedding, q, k, v, o, SwiGLU y normas (las de q y k, por cabeza)."""
    attention = 2 * model.d_model * model.head_dim * (model.n_heads + model.n_kv_heads)
    norms = 2 * model.d_model + 2 * model.head_dim
    block = attention + 3 * model.d_model * model.d_ff + norms
    return model.vocab_size * model.d_model + model.n_layers * block + model.d_model


@pytest.mark.parametrize("name", sorted(EXPECTED["model"]))
def test_the_parameter_count_in_the_comment_is_right(name: str) -> None:
    path = CONFIGS / "model" / f"{name}.yaml"
    claimed = re.search(r"[\d.]{7,}(?= parámetros)", path.read_text(encoding="utf-8"))
    run = load_run(CONFIGS / "runs/pretrain-cpu.yaml", [f"include.model={name}"]).run
    assert claimed is not None
    assert int(claimed[0].replace(".", "")) == parameters(run.model)


def test_the_byte_level_count_of_the_smoke_run_is_right() -> None:
    text = (CONFIGS / "runs/smoke-cpu.yaml").read_text(encoding="utf-8")
    shown = f"{parameters(load_run(CONFIGS / 'runs/smoke-cpu.yaml').run.model):,}".replace(",", ".")
    assert shown in text


def test_the_smoke_run_shows_its_curve() -> None:
    train = load_run(CONFIGS / "runs/smoke-cpu.yaml").run.train
    assert train.steps // train.evaluation.every >= 8
    assert 0.3 <= train.schedule.decay_steps / train.steps <= 0.5


def test_committed_schemas_are_current() -> None:
    written = {path.stem: json.loads(path.read_text(encoding="utf-8")) for path in (CONFIGS / "schema").glob("*.json")}
    assert written == json_schemas()
    assert set(written) == {*LAYERS, "agent", "corpus", "run"}


def test_schemas_know_every_key_and_demand_none() -> None:
    for name, schema in json_schemas().items():
        assert schema["additionalProperties"] is False
        assert "include" in schema["properties"]
        assert '"required"' not in json.dumps(schema), name
