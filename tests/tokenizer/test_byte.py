"""El tokenizador de bytes: ida y vuelta exacta, especiales inalcanzables y los mismos ids en las librerías de HF."""

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import Tokenizer
from transformers import AutoTokenizer, PreTrainedTokenizerBase

from enlace.config.schema.data import BYTE_VOCAB_SIZE
from enlace.tokenizer import END_OF_TEXT, IM_END, IM_START, SPECIAL_TOKENS, ByteTokenizer

TOKENIZER = ByteTokenizer()
HF = Tokenizer.from_str(TOKENIZER.files()["tokenizer.json"].decode())
HF.encode_special_tokens = True  # como `encode`: el texto nunca produce especiales
texts = st.one_of(st.text(), st.lists(st.sampled_from([*SPECIAL_TOKENS[:4], "ñ", " ", "\n", "<|", "🧉"])).map("".join))


@given(texts)
def test_every_text_comes_back_identical(text: str) -> None:
    assert TOKENIZER.decode(TOKENIZER.encode(text)) == text


@given(texts)
def test_no_text_yields_a_special_id(text: str) -> None:
    ids = TOKENIZER.encode(text)
    assert ids.dtype == np.uint16
    assert (ids < 256).all()


@given(texts)
def test_hugging_face_gives_the_same_ids_and_text(text: str) -> None:
    ids = TOKENIZER.encode(text).tolist()
    assert HF.encode(text).ids == ids
    assert HF.decode(ids) == text


def test_specials_take_the_last_32_ids_in_order() -> None:
    assert TOKENIZER.vocab_size == BYTE_VOCAB_SIZE == 288
    assert len(set(SPECIAL_TOKENS)) == 32
    assert [HF.token_to_id(name) for name in SPECIAL_TOKENS] == list(range(256, 288))
    assert TOKENIZER.end_of_text == HF.token_to_id(END_OF_TEXT)


def test_decode_skips_specials_and_marks_broken_utf8() -> None:
    ids = [*"sí".encode(), 256, 287, 0xC3]
    assert TOKENIZER.decode(ids) == "sí�"


def test_a_lone_surrogate_does_not_break_a_prompt() -> None:
    assert TOKENIZER.decode(TOKENIZER.encode("a\udcffb")) == "a?b"


def test_the_definition_never_changes() -> None:
    assert TOKENIZER.sha256 == ByteTokenizer().sha256
    assert TOKENIZER.sha256 == "e8db7cf8241d26321265e7974e56e3f74bb8d86f1fc00a6452948c3272e80682"


@pytest.fixture(scope="module")
def loaded(tmp_path_factory: pytest.TempPathFactory) -> PreTrainedTokenizerBase:
    folder: Path = tmp_path_factory.mktemp("tokenizer")
    for name, content in TOKENIZER.files().items():
        (folder / name).write_bytes(content)
    # La carpeta de un modelo lleva también su config.json, y `transformers` la mira para elegir la clase.
    (folder / "config.json").write_text(json.dumps({"model_type": "qwen3", "architectures": ["Qwen3ForCausalLM"]}))
    return AutoTokenizer.from_pretrained(folder)


@pytest.mark.parametrize("text", ["", "¿Qué tal, José?  \n\n1.234 €", "e\u0301 🧉\x00\t"])
def test_transformers_loads_it_with_the_same_ids(loaded: PreTrainedTokenizerBase, text: str) -> None:
    ids = TOKENIZER.encode(text).tolist()
    assert loaded(text)["input_ids"] == ids
    assert loaded.decode(ids) == text


def test_transformers_knows_the_specials(loaded: PreTrainedTokenizerBase) -> None:
    assert loaded.eos_token_id == TOKENIZER.end_of_text
    assert loaded.convert_tokens_to_ids([IM_START, IM_END]) == [257, 258]
    assert len(loaded) == TOKENIZER.vocab_size
    assert loaded.decode([104, 256, 111], skip_special_tokens=True) == "ho"
    assert loaded(END_OF_TEXT, split_special_tokens=True)["input_ids"] == TOKENIZER.encode(END_OF_TEXT).tolist()
