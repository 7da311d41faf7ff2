"""Los mismos pesos dan los mismos logits en transformers, y la carpeta que se escribe la lee transformers."""

from pathlib import Path
from typing import Any

import pytest
import torch

from enlace.config.schema import Model, Sample
from enlace.durable import publish
from enlace.model.directory import KIND, generation_config, hf_config, load_model, model_files
from enlace.tokenizer import ByteTokenizer
from tests.model.shapes import random_ids, random_model, shape

transformers = pytest.importorskip("transformers", reason="falta el extra de pruebas: pip install -e '.[dev]'")

SAMPLE = Sample(prompt="Hola", max_new_tokens=9, temperature=0.7, top_k=20, top_p=0.9, seed=1)


def qwen3(config: Model) -> Any:
    """Un Qwen3ForCausalLM al azar, hecho con los nombres de HF escritos a mano."""
    return transformers.Qwen3ForCausalLM(
        transformers.Qwen3Config(
            vocab_size=config.vocab_size,
            hidden_size=config.d_model,
            intermediate_size=config.d_ff,
            num_hidden_layers=config.n_layers,
            num_attention_heads=config.n_heads,
            num_key_value_heads=config.n_kv_heads,
            head_dim=config.head_dim,
            max_position_embeddings=config.max_sequence_length,
            rms_norm_eps=config.norm_eps,
            rope_parameters={"rope_type": "default", "rope_theta": config.rope_theta},
            tie_word_embeddings=config.tie_embeddings,
            attention_bias=False,
            attn_implementation="eager",
        )
    ).eval()


@pytest.mark.parametrize("tied", [True, False])
@pytest.mark.parametrize("n_kv_heads", [4, 2, 1])
@pytest.mark.parametrize("head_dim", [6, 10, 64])
def test_logits_equal_qwen3(tied: bool, n_kv_heads: int, head_dim: int) -> None:
    config = shape(tie_embeddings=tied, n_kv_heads=n_kv_heads, head_dim=head_dim)
    model = random_model(config)
    reference = qwen3(config)
    ours, theirs = set(model.state_dict()), set(reference.state_dict())
    assert theirs - ours == ({"lm_head.weight"} if tied else set())
    assert ours <= theirs
    reference.load_state_dict(model.state_dict(), strict=not tied)
    ids = random_ids(config, 3, config.max_sequence_length)
    with torch.no_grad():
        expected, logits = reference(ids).logits, model(ids)
    assert expected.std() > 0.5
    assert (logits - expected).abs().max() <= 1e-4


def test_gradients_equal_qwen3() -> None:
    config = shape()
    model = random_model(config)
    reference = qwen3(config)
    reference.load_state_dict(model.state_dict(), strict=False)
    ids = random_ids(config, 2, 16)
    for logits in (model(ids), reference(ids).logits):
        torch.nn.functional.cross_entropy(logits.flatten(0, 1), ids.flatten()).backward()
    expected = dict(reference.named_parameters())
    for name, parameter in model.named_parameters():
        torch.testing.assert_close(parameter.grad, expected[name].grad, rtol=1e-3, atol=1e-5, msg=name)


@pytest.mark.parametrize("tied", [True, False])
def test_published_directory_loads_in_transformers_and_in_enlace(tied: bool, tmp_path: Path) -> None:
    tokenizer = ByteTokenizer()
    config = shape(tie_embeddings=tied, vocab_size=tokenizer.vocab_size, rope_theta=12345.0)
    model = random_model(config)
    path = tmp_path / "modelo ñ"
    generation = generation_config(SAMPLE, tokenizer.end_of_text)
    publish(path, model_files(model, tokenizer.files(), generation, card="# Modelo\n"), kind=KIND)

    reference, report = transformers.Qwen3ForCausalLM.from_pretrained(path, output_loading_info=True)
    assert not any(report.values()), report
    loaded, manifest = load_model(path, attention="flash")
    ids = random_ids(config, 2, 32)
    with torch.no_grad():
        expected = model(ids)
        assert (reference.eval()(ids).logits - expected).abs().max() <= 1e-4
        assert (loaded(ids) - expected).abs().max() <= 1e-4
    assert manifest.kind == KIND
    assert loaded.config == config and not loaded.training
    assert (loaded.head_weight is loaded.model.embed_tokens.weight) == tied

    assert reference.config.rope_parameters["rope_theta"] == 12345.0
    assert reference.config.eos_token_id == reference.config.bos_token_id == tokenizer.end_of_text
    assert reference.generation_config.eos_token_id == tokenizer.end_of_text
    assert reference.generation_config.temperature == 0.7 and reference.generation_config.do_sample
    text = "¿Qué día es mañana?"
    assert transformers.AutoTokenizer.from_pretrained(path)(text)["input_ids"] == tokenizer.encode(text).tolist()


def test_config_has_what_transformers_4_reads() -> None:
    config = hf_config(random_model(shape()), generation_config(SAMPLE, 60))
    assert config["rope_theta"] == 500.0
    assert config["torch_dtype"] == config["dtype"] == "float32"
    assert config["head_dim"] == 10
    assert config["tie_word_embeddings"] is True
    assert config["eos_token_id"] == config["bos_token_id"] == 60


def test_greedy_sample_is_a_valid_hf_generation_config() -> None:
    greedy = generation_config(SAMPLE.model_copy(update={"temperature": 0.0}), 60)
    transformers.GenerationConfig(**greedy).validate(strict=True)
    assert greedy["do_sample"] is False
