"""bench/quality.py de punta a punta, con un corpus y unas recetas de juguete."""

import importlib.util
import json
from pathlib import Path
from types import ModuleType

import pytest
import zstandard

from tests.tiny import SENTENCES

BENCH = Path(__file__).parents[2] / "bench" / "quality.py"
TOY = """
run: smoke-cpu
fixed:
  hardware.threads: 1
  hardware.compile: false
  model.vocab_size: 300
  model.d_model: 64
  model.n_layers: 1
  model.n_heads: 1
  model.n_kv_heads: 1
  model.d_ff: 64
  data.kind: shards
  data.validation_fraction: 0
  train.sequence_length: 32
  train.evaluation.sequences: 8
base:
  train.batch_size: 2
warmup_share: 0.1
decay_share: 0.5
groups:
  prueba:
    tokens: 640
    equal: cpu
    seeds: [1, 2]
    recipes:
      igual: {}
      doble: {train.batch_size: 4}
      muda: {zero_residual: true}
"""


@pytest.fixture
def bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    spec = importlib.util.spec_from_file_location("bench_quality", BENCH)
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    (tmp_path / "toy.yaml").write_text(TOY, encoding="utf-8")
    monkeypatch.setattr(module, "EXPERIMENTS", tmp_path / "toy.yaml")
    monkeypatch.setattr(module, "CACHE", tmp_path / "cache")
    monkeypatch.setattr(module, "SHARDS", tmp_path / "cache" / "shards")
    monkeypatch.setattr(module, "RESULTS", tmp_path / "cache" / "results.jsonl")
    return module


def write_corpus(folder: Path) -> None:
    documents = [{"work": f"obra {n}", "text": " ".join(SENTENCES) * 3 + str(n)} for n in range(200)]
    lines = "\n".join(json.dumps(document) for document in documents).encode()
    folder.mkdir()
    (folder / "textos.jsonl.zst").write_bytes(zstandard.compress(lines))


def test_no_work_is_in_both_parts(bench: ModuleType, tmp_path: Path) -> None:
    write_corpus(tmp_path / "corpus")
    files = [tmp_path / "corpus" / "textos.jsonl.zst"]
    train, validation = (set(bench.documents(files, validation=part)) for part in (False, True))
    assert train and validation and not train & validation
    assert len(train | validation) == 200


def test_a_recipe_gives_the_steps_that_fit_in_its_budget_and_the_table_ranks_them(
    bench: ModuleType, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_corpus(tmp_path / "corpus")
    bench.prepare(tmp_path / "corpus", "*.jsonl.zst", 300)
    for recipe in ("igual", "doble", "muda"):
        bench.run_cell("prueba", recipe, 1)
    rows = bench.results()
    assert [row["recipe"] for row in rows] == ["igual", "doble", "muda"]
    assert all(row["tokens"] == pytest.approx(640 / row["relative_cost"], abs=128) for row in rows)
    assert all(0 < row["validation"] < 20 for row in rows)
    table = bench.table([])
    assert table.startswith("### prueba")
    ranked = sorted(rows, key=lambda row: row["validation"])
    positions = [table.index(f"| {row['recipe']} |") for row in ranked]
    assert positions == sorted(positions)
