"""La carpeta de un modelo: la que transformers lee como Qwen3ForCausalLM, con manifiesto y ficha."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from enlace.config import schema
from enlace.durable import Content, Json, Manifest, read_json, to_json, verify
from enlace.errors import CorruptDataError
from enlace.model.transformer import Transformer
from enlace.model.weights import load_weights, read_tensors, tensor_chunks

KIND = "model"
_CONFIG = "config.json"
_WEIGHTS = "model.safetensors"
_HF_NAMES = {
    "vocab_size": "vocab_size",
    "d_model": "hidden_size",
    "n_layers": "num_hidden_layers",
    "n_heads": "num_attention_heads",
    "n_kv_heads": "num_key_value_heads",
    "head_dim": "head_dim",
    "d_ff": "intermediate_size",
    "max_sequence_length": "max_position_embeddings",
    "rope_theta": "rope_theta",
    "norm_eps": "rms_norm_eps",
    "init_std": "initializer_range",
    "tie_embeddings": "tie_word_embeddings",
}


def model_files(
    model: Transformer, tokenizer_files: Mapping[str, bytes], generation: Mapping[str, Json], *, card: str
) -> dict[str, Content]:
    """Los ficheros de la carpeta, para `durable.publish(kind=directory.KIND)`.

    generation: contenido de generation_config.json (ver `generation_config`). card: la ficha del modelo, README.md.
    """
    return {
        _CONFIG: to_json(hf_config(model, generation)),
        _WEIGHTS: tensor_chunks(model.state_dict()),
        "generation_config.json": to_json(dict(generation)),
        "README.md": card.encode(),
        **tokenizer_files,
    }


def generation_config(sample: schema.Sample, end_of_text: int) -> dict[str, Json]:
    """La capa `sample` con los nombres de HF. Cada documento acaba en `end_of_text`, que abre también el siguiente."""
    ids: dict[str, Json] = dict.fromkeys(("bos_token_id", "eos_token_id", "pad_token_id"), end_of_text)
    if sample.temperature == 0:
        return {**ids, "do_sample": False, "max_new_tokens": sample.max_new_tokens}
    return {
        **ids,
        "do_sample": True,
        "max_new_tokens": sample.max_new_tokens,
        "temperature": sample.temperature,
        "top_k": sample.top_k,
        "top_p": sample.top_p,
    }


def load_model(path: Path, *, attention: schema.Attention = "math") -> tuple[Transformer, Manifest]:
    """El modelo de la carpeta, en CPU y en eval(), y su manifiesto.

    Se verifica cada byte y los pesos deben coincidir uno a uno. NotFoundError si no existe; CorruptDataError si algo
    no es lo que se guardó.
    """
    manifest = verify(path, KIND)
    model = Transformer(_read_config(path / _CONFIG), attention=attention)
    load_weights(model, read_tensors(path / _WEIGHTS), where=str(path / _WEIGHTS))
    return model.eval(), manifest


def hf_config(model: Transformer, generation: Mapping[str, Json]) -> dict[str, Json]:
    """El config.json de Qwen3ForCausalLM."""
    shape = model.config.model_dump()
    dtype = str(model.head_weight.dtype).removeprefix("torch.")
    return {
        "architectures": ["Qwen3ForCausalLM"],
        "model_type": "qwen3",
        **{hf_name: shape[name] for name, hf_name in _HF_NAMES.items()},
        # transformers 5 lee rope_parameters y dtype; transformers 4, rope_theta y torch_dtype.
        "rope_parameters": {"rope_type": "default", "rope_theta": model.config.rope_theta},
        "dtype": dtype,
        "torch_dtype": dtype,
        "hidden_act": "silu",
        "attention_bias": False,
        "attention_dropout": 0.0,
        "use_sliding_window": False,
        "use_cache": True,
        **{name: value for name, value in generation.items() if name.endswith("_token_id")},
    }


def _read_config(path: Path) -> schema.Model:
    document: Any = read_json(path)
    try:
        return schema.Model(**{name: document[hf_name] for name, hf_name in _HF_NAMES.items()})
    except (KeyError, TypeError, ValidationError) as error:
        raise CorruptDataError("config.json no describe un modelo", where=str(path), why=str(error)) from error
