"""Muestreo: lo que sale, cuándo para y que el texto nunca corta un carácter."""

from collections import Counter
from collections.abc import Sequence
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from enlace.config.schema import Sample
from enlace.errors import EnlaceError, UsageError
from enlace.infer.generate import decode_stream, generate_text, pick, sample_ids
from enlace.model import Transformer
from enlace.tokenizer import ByteTokenizer
from tests.model.shapes import random_model, shape

TOKENIZER = ByteTokenizer()
CONTEXT = 16


def sample(**changes: Any) -> Sample:
    values: dict[str, Any] = {
        "prompt": "Había una vez",
        "max_new_tokens": 12,
        "temperature": 1.0,
        "top_k": 0,
        "top_p": 1.0,
        "seed": 3,
    }
    return Sample(**values | changes)


def model(vocab_size: int = TOKENIZER.vocab_size, **changes: Any) -> Transformer:
    return random_model(shape(vocab_size=vocab_size, max_sequence_length=CONTEXT, n_layers=1), **changes)


def ids_of(
    model: Transformer, prompt: Sequence[int], vocab_size: int = 288, end: int = -1, **changes: Any
) -> list[int]:
    return list(sample_ids(model, prompt, sample(**changes), vocab_size=vocab_size, end_of_text=end))


def always(model: Transformer, id_: int) -> Transformer:
    """Un modelo que siempre prefiere `id_`: el estado final es constante y solo esa fila lo mira."""
    with torch.no_grad():
        for block in model.model.layers:
            for parameter in block.parameters():
                parameter.zero_()
        model.model.embed_tokens.weight.fill_(1.0)
        model.model.embed_tokens.weight[id_] = 3.0
    return model


def test_same_seed_same_text_and_another_seed_another() -> None:
    texts = ["".join(generate_text(model(), TOKENIZER, sample(seed=seed))) for seed in (3, 3, 4)]
    assert texts[0] == texts[1] != texts[2]


def test_the_global_generator_plays_no_part() -> None:
    torch.manual_seed(1)
    first = ids_of(model(), [1, 2])
    torch.manual_seed(2)
    before = torch.get_rng_state()
    assert ids_of(model(), [1, 2]) == first
    assert torch.equal(before, torch.get_rng_state())


def test_zero_temperature_is_greedy() -> None:
    transformer = model()
    ids = [5, 6]
    for id_ in ids_of(transformer, ids, temperature=0.0):
        assert id_ == int(transformer(torch.tensor([ids[-CONTEXT:]]))[0, -1].argmax())
        ids.append(id_)
    assert len(ids) == 2 + 12


def test_a_prompt_longer_than_the_context_keeps_the_newest_tokens() -> None:
    prompt = list(range(100))
    assert ids_of(model(), prompt) == ids_of(model(), prompt[-CONTEXT:])
    assert ids_of(model(), prompt) != ids_of(model(), prompt[:CONTEXT])


def test_stops_at_end_of_text_without_giving_it() -> None:
    end = TOKENIZER.end_of_text
    assert ids_of(always(model(), end), [1], end=end, temperature=0.0) == []
    assert ids_of(always(model(), 65), [1], end=end, temperature=0.0) == [65] * 12


def test_ids_that_the_tokenizer_lacks_are_never_sampled() -> None:
    padded = model(vocab_size=400)
    with torch.no_grad():
        padded.model.embed_tokens.weight[288:] *= 50  # los preferidos, si se dejara
    unmasked = ids_of(padded, [1, 2], vocab_size=400, max_new_tokens=100)
    assert max(unmasked) >= 288
    for temperature in (0.0, 1.0, 50.0):
        assert max(ids_of(padded, [1, 2], temperature=temperature, max_new_tokens=100)) < 288


def test_an_empty_prompt_of_ids_is_refused_at_the_call() -> None:
    with pytest.raises(UsageError):
        sample_ids(model(), [], sample(), vocab_size=288, end_of_text=256)


def test_an_empty_prompt_of_text_starts_a_document() -> None:
    assert "".join(generate_text(model(), TOKENIZER, sample(prompt=""))) != ""


def test_dropout_is_off_while_generating_and_the_mode_comes_back() -> None:
    noisy = model(dropout=0.5).train()
    assert ids_of(noisy, [1, 2]) == ids_of(model(), [1, 2])
    assert noisy.training
    stream = sample_ids(noisy, [1], sample(), vocab_size=288, end_of_text=-1)
    next(stream)
    stream.close()  # type: ignore[attr-defined]
    assert noisy.training


def test_gradients_still_work_between_two_tokens() -> None:
    transformer = model()
    stream = sample_ids(transformer, [1], sample(), vocab_size=288, end_of_text=-1)
    next(stream)
    transformer(torch.tensor([[1, 2]])).sum().backward()
    assert transformer.head_weight.grad is not None


def test_a_broken_model_is_a_clear_error() -> None:
    broken = model()
    with torch.no_grad():
        broken.model.norm.weight.fill_(torch.nan)
    with pytest.raises(EnlaceError, match="no finitos"):
        ids_of(broken, [1])


def frequencies(logits: Tensor, **changes: Any) -> dict[int, float]:
    generator = torch.Generator().manual_seed(0)
    counts = Counter(pick(logits, sample(**changes), generator) for _ in range(4000))
    return {id_: count / 4000 for id_, count in counts.items()}


PROBABILITIES = torch.tensor([0.1, 0.5, 0.05, 0.3, 0.05])


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, [0.1, 0.5, 0.05, 0.3, 0.05]),
        ({"top_k": 2}, [0, 0.625, 0, 0.375, 0]),
        ({"top_k": 99}, [0.1, 0.5, 0.05, 0.3, 0.05]),
        ({"top_p": 0.4}, [0, 1, 0, 0, 0]),
        ({"top_p": 0.6}, [0, 0.625, 0, 0.375, 0]),
        ({"top_p": 0.85}, [1 / 9, 5 / 9, 0, 3 / 9, 0]),
        ({"top_k": 2, "top_p": 0.6}, [0, 1, 0, 0, 0]),
        ({"temperature": 0.5}, [0.01 / 0.355, 0.25 / 0.355, 0.0025 / 0.355, 0.09 / 0.355, 0.0025 / 0.355]),
        ({"temperature": 1e-40}, [0, 1, 0, 0, 0]),
        ({"temperature": 1e-60}, [0, 1, 0, 0, 0]),
    ],
)
def test_ids_come_out_with_the_probability_they_should(changes: dict[str, Any], expected: list[float]) -> None:
    found = frequencies(PROBABILITIES.log(), **changes)
    for id_, probability in enumerate(expected):
        assert found.get(id_, 0.0) == pytest.approx(probability, abs=0.03)
        assert (id_ in found) == (probability > 0)


def test_top_p_keeps_the_smallest_set_that_reaches_it() -> None:
    assert set(frequencies(torch.zeros(4), top_p=0.5)) == {0, 1}


@settings(deadline=None)
@given(st.lists(st.integers(0, 287), max_size=40))
def test_streamed_pieces_join_into_the_whole_text(ids: list[int]) -> None:
    pieces = list(decode_stream(TOKENIZER, ids))
    assert "".join(pieces) == TOKENIZER.decode(ids)
    assert all(pieces)


@settings(deadline=None)
@given(st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\ufffd"), max_size=30))
def test_a_character_is_given_whole_and_as_soon_as_it_is_complete(text: str) -> None:
    pieces = list(decode_stream(TOKENIZER, TOKENIZER.encode(text).tolist()))
    assert pieces == list(text)


def test_an_unfinished_character_at_the_end_is_shown_as_replaced() -> None:
    assert list(decode_stream(TOKENIZER, [65, 0xF0, 0x9F])) == ["A", "\ufffd"]


def test_text_is_given_while_it_is_generated() -> None:
    ids = iter([72, 111, 108])
    stream = decode_stream(TOKENIZER, ids)
    assert next(stream) == "H"
    assert next(ids) == 111
