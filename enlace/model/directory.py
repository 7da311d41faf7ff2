"""La carpeta de un modelo: la que transformers lee como Qwen3ForCausalLM, con manifiesto y ficha."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import ValidationError
from torch import Tensor

from enlace.config import schema
from enlace.durable import Content, Json, Manifest, read_json, to_json, verify
from enlace.errors import CorruptDataError
from enlace.model.accounting import n_parameters
from enlace.model.transformer import Transformer
from enlace.model.weights import load_weights, read_tensors, tensor_chunks

KIND = "model"
_CONFIG = "config.json"
_WEIGHTS = "model.safetensors"
# 256 MiB de tablas de RoPE: un millón de tokens con cabezas de 32.
_MAX_ROPE_VALUES = 1 << 26
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
    no es lo que se guardó o la configuración pide más memoria de la que sus pesos justifican.
    """
    manifest = verify(path, KIND)
    config = _read_config(path / _CONFIG)
    tensors = read_tensors(path / _WEIGHTS)
    _require_size(config, tensors, path / _CONFIG)
    model = Transformer(config, attention=attention)
    load_weights(model, tensors, where=str(path / _WEIGHTS))
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


def _require_size(config: schema.Model, tensors: Mapping[str, Tensor], where: Path) -> None:
    """CorruptDataError si el modelo es mucho mayor que sus pesos: construirlo pediría la memoria que quisiera otro."""
    described, given = n_parameters(config), sum(tensor.numel() for tensor in tensors.values())
    tables = 2 * config.max_sequence_length * config.head_dim
    if described > 2 * given or config.n_layers > len(tensors):
        why = f"describe {described} parámetros en {config.n_layers} bloques y los pesos son {given}"
    elif tables > max(_MAX_ROPE_VALUES, given):
        why = f"un contexto de {config.max_sequence_length} tokens no cabe en memoria"
    else:
        return
    raise CorruptDataError(
        "config.json no es el de estos pesos",
        where=str(where),
        why=why,
        fix="usa los pesos y la configuración de la misma corrida",
    )


def _read_config(path: Path) -> schema.Model:
    document: Any = read_json(path)
    try:
        return schema.Model(**{name: document[hf_name] for name, hf_name in _HF_NAMES.items()})
    except (KeyError, TypeError, ValidationError) as error:
        raise CorruptDataError(
            "config.json no describe un modelo",
            where=str(path),
            why=_config_problem(error),
            fix="usa una carpeta de modelo escrita por ENLACE",
        ) from error


def _config_problem(error: KeyError | TypeError | ValidationError) -> str:
    if isinstance(error, TypeError):
        return "no es un objeto"
    if isinstance(error, KeyError):
        return f"le falta {error}"
    wrong = {part for detail in error.errors() for part in detail["loc"]}
    return f"no sirve {', '.join(hf_name for name, hf_name in _HF_NAMES.items() if name in wrong) or 'su forma'}"
