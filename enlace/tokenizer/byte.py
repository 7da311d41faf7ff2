"""Tokenizador de bytes: sin entrenar nada, todo texto cabe y vuelve idéntico."""

import hashlib
from collections.abc import Iterable
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from enlace.durable import Json, to_json
from enlace.tokenizer.special import END_OF_TEXT, SPECIAL_TOKENS

_N_BYTES = 256


class ByteTokenizer:
    """Ids 0–255: los bytes de UTF-8. Ids 256–287: los tokens especiales, que ningún texto produce."""

    vocab_size: int = _N_BYTES + len(SPECIAL_TOKENS)
    end_of_text: int = _N_BYTES + SPECIAL_TOKENS.index(END_OF_TEXT)

    def encode(self, text: str) -> NDArray[np.uint16]:
        """Ids del texto, uint16 [n]. Un sustituto suelto (no existe en UTF-8) pasa a «?»."""
        return np.frombuffer(text.encode("utf-8", errors="replace"), dtype=np.uint8).astype(np.uint16)

    def decode(self, ids: Iterable[int]) -> str:
        """Texto de los ids: los especiales se saltan y los bytes que no son UTF-8 salen como �."""
        return bytes(id_ for id_ in ids if id_ < _N_BYTES).decode("utf-8", errors="replace")

    @cached_property
    def sha256(self) -> str:
        """Huella de la definición: dos tokenizadores con la misma huella dan los mismos ids."""
        return hashlib.sha256(self.files()["tokenizer.json"]).hexdigest()

    def files(self) -> dict[str, bytes]:
        """`tokenizer.json` y `tokenizer_config.json`, que `tokenizers` y `transformers` leen con los mismos ids."""
        config: dict[str, Json] = {
            "tokenizer_class": "PreTrainedTokenizerFast",
            "eos_token": END_OF_TEXT,
            "pad_token": END_OF_TEXT,
            "clean_up_tokenization_spaces": False,
        }
        return {"tokenizer.json": to_json(_hf_definition()), "tokenizer_config.json": to_json(config)}


def _hf_definition() -> dict[str, Json]:
    """Un BPE sin fusiones sobre los 256 símbolos de ByteLevel, sin normalizador y sin partir por palabras."""
    byte_level: dict[str, Json] = {
        "type": "ByteLevel",
        "add_prefix_space": False,
        "trim_offsets": False,
        "use_regex": False,
    }
    return {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [_added_token(_N_BYTES + k, content) for k, content in enumerate(SPECIAL_TOKENS)],
        "normalizer": None,
        "pre_tokenizer": byte_level,
        "post_processor": None,
        "decoder": byte_level,
        "model": {"type": "BPE", "vocab": {symbol: byte for byte, symbol in enumerate(_symbols())}, "merges": []},
    }


def _added_token(id_: int, content: str) -> dict[str, Json]:
    flags: dict[str, Json] = dict.fromkeys(("single_word", "lstrip", "rstrip", "normalized"), False)
    return {"id": id_, "content": content, "special": True, **flags}


def _symbols() -> list[str]:
    """El carácter visible con que ByteLevel escribe cada byte (GPT-2, Radford et al., 2019)."""
    visible = [*range(ord("!"), ord("~") + 1), *range(ord("¡"), ord("¬") + 1), *range(ord("®"), ord("ÿ") + 1)]
    hidden = [byte for byte in range(_N_BYTES) if byte not in visible]
    symbols = {byte: chr(byte) for byte in visible}
    symbols.update({byte: chr(_N_BYTES + k) for k, byte in enumerate(hidden)})
    return [symbols[byte] for byte in range(_N_BYTES)]
