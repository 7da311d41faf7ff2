"""`enlace config`: la misma configuración, vista por una persona y por un programa."""

import json
import shutil
from pathlib import Path

import pytest
import yaml

from enlace.cli import main

ROOT = Path(__file__).parents[2]


@pytest.fixture(autouse=True)
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    shutil.copytree(ROOT / "configs", tmp_path / "configs")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_show_prints_the_whole_run_and_loads_back(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["config", "show", "smoke-cpu", "train.seed=99"]) == 0
    shown = capsys.readouterr().out
    assert yaml.safe_load(shown)["train"]["seed"] == 99
    (project / "otra.yaml").write_text(shown)
    assert main(["config", "show", "./otra.yaml"]) == 0
    assert capsys.readouterr().out == shown


def test_show_json_is_the_same_run(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["config", "show", "smoke-cpu", "--json"]) == 0
    values = json.loads(capsys.readouterr().out)
    assert (values["name"], values["hardware"]["device"]) == ("smoke-cpu", "cpu")


def test_origin_says_where_each_value_comes_from(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["config", "show", "smoke-cpu", "train.seed=99", "--origin"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert all(" = " in line and "  ← " in line for line in lines)
    assert any(line.startswith("model.d_model = ") and "configs/model/" in line for line in lines)


def test_origin_json_has_an_origin_for_every_value(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["config", "show", "smoke-cpu", "--origin", "--json"]) == 0
    shown = json.loads(capsys.readouterr().out)
    assert shown["config"]["model"]["d_model"] > 0
    assert shown["origins"]["model.d_model"].startswith("configs/model/")


def test_check_names_every_file(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    files = sorted(path.relative_to(project).as_posix() for path in (project / "configs").rglob("*.yaml"))
    assert main(["config", "check"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines == [*(f"✓ {file}" for file in files), f"{len(files)} ficheros, todos válidos"]


def test_check_fails_with_code_4_and_the_line(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = project / "configs" / "runs" / "smoke-cpu.yaml"
    path.write_text(path.read_text() + "\ntrian: {}\n")
    assert main(["config", "check"]) == 4
    error = capsys.readouterr().err
    assert f"configs/runs/smoke-cpu.yaml:{len(path.read_text().splitlines())}" in error
    assert "trian" in error


def test_schema_writes_what_it_prints(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    shutil.rmtree(project / "configs" / "schema", ignore_errors=True)
    assert main(["config", "schema"]) == 0
    printed = capsys.readouterr().out
    assert main(["config", "schema", "--write"]) == 0
    written = [project / line.removeprefix("✓ ") for line in capsys.readouterr().out.splitlines()]
    assert "".join(path.read_text() for path in written) == printed


def test_committed_schemas_are_current(project: Path) -> None:
    before = {path.name: path.read_text() for path in (project / "configs" / "schema").glob("*.json")}
    assert main(["config", "schema", "--write"]) == 0
    after = {path.name: path.read_text() for path in (project / "configs" / "schema").glob("*.json")}
    assert before == after, "ejecuta: enlace config schema --write"
