"""`enlace generate`: el texto es el del motor, con los valores del modelo salvo los que se dicen."""

import sys
from pathlib import Path

import pytest
import torch

from enlace.cli import main
from enlace.config.schema import Model, Sample
from enlace.durable import publish
from enlace.infer.generate import generate_text
from enlace.model import Transformer
from enlace.model.directory import KIND, generation_config, load_model, model_files
from enlace.tokenizer import ByteTokenizer

SAMPLE = Sample(prompt="", max_new_tokens=12, temperature=0.9, top_k=40, top_p=0.9, seed=0)
SHAPE = Model(
    vocab_size=288,
    d_model=32,
    n_layers=1,
    n_heads=2,
    n_kv_heads=1,
    head_dim=16,
    d_ff=32,
    max_sequence_length=32,
    rope_theta=10000.0,
    norm_eps=1e-6,
    init_std=0.02,
    tie_embeddings=True,
)


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Una carpeta con la corrida `mia` terminada: un modelo sin entrenar, que también escribe."""
    tokenizer = ByteTokenizer()
    model = Transformer(SHAPE)
    model.init_weights(torch.Generator().manual_seed(1))
    (tmp_path / "runs" / "mia").mkdir(parents=True)
    generation = generation_config(SAMPLE, tokenizer.end_of_text)
    files = model_files(model, tokenizer.files(), generation, card="# Modelo de prueba\n")
    publish(tmp_path / "runs" / "mia" / "model", files, kind=KIND)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def expected(sample: Sample) -> str:
    model, _ = load_model(Path("runs/mia/model"))
    return sample.prompt + "".join(generate_text(model, ByteTokenizer(), sample)) + "\n"


@pytest.mark.parametrize("name", ["mia", "runs/mia", "runs/mia/model"])
def test_writes_what_the_engine_gives_with_the_values_of_the_model(
    name: str, project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["generate", name]) == 0
    assert capsys.readouterr().out == expected(SAMPLE)


def test_what_is_said_wins(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    said = Sample(prompt="Érase", max_new_tokens=5, temperature=0.5, top_k=7, top_p=0.5, seed=3)
    options = [f"--{name.replace('_', '-')}={value}" for name, value in said.model_dump().items()]
    assert main(["generate", "mia", *options]) == 0
    assert capsys.readouterr().out == expected(said)


def test_a_run_that_does_not_exist_says_what_to_do(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["generate", "otra"]) == 5
    assert capsys.readouterr().err.splitlines()[0] == "error: «otra» no es un modelo ni una corrida terminada"


def test_a_run_that_has_not_finished_says_how_to_finish_it(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (project / "runs" / "otra" / "checkpoints").mkdir(parents=True)
    assert main(["generate", "otra"]) == 5
    shown = capsys.readouterr().err
    assert shown.startswith("error: la corrida «otra» no ha terminado\n")
    assert "--resume auto" in shown


def test_a_changed_weight_is_refused(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    weights = project / "runs" / "mia" / "model" / "model.safetensors"
    content = bytearray(weights.read_bytes())
    content[-1] ^= 1
    weights.write_bytes(content)
    assert main(["generate", "mia"]) == 7
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "model.safetensors" in captured.err


def test_a_tokenizer_with_more_ids_than_the_model_is_refused(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model = Transformer(SHAPE.model_copy(update={"vocab_size": 100}))
    files = model_files(model, ByteTokenizer().files(), generation_config(SAMPLE, 1), card="")
    publish(project / "otro", files, kind=KIND)
    assert main(["generate", "otro"]) == 7
    assert "tiene 288 ids y el modelo, 100" in capsys.readouterr().err


def test_nothing_commands_the_terminal(
    project: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    prompt = "año\t\x1b]0;título\x07\x9b31m\n"
    assert main(["generate", "mia", "--prompt", prompt]) == 0
    assert prompt in capsys.readouterr().out
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    assert main(["generate", "mia", "--prompt", prompt]) == 0
    assert capsys.readouterr().out.startswith("año\t�]0;título��31m\n")


@pytest.mark.parametrize("others", [{"tokenizer.json": b"{}", "tokenizer_config.json": b"{}"}, {}])
def test_another_tokenizer_or_none_is_refused(
    others: dict[str, bytes], project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model, _ = load_model(Path("runs/mia/model"))
    files = model_files(model, others, generation_config(SAMPLE, 1), card="")
    publish(project / "otro", files, kind=KIND)
    assert main(["generate", "otro"]) == 1
    assert "error: este modelo no usa el tokenizer de bytes" in capsys.readouterr().err
