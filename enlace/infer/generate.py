"""Muestreo token a token, sin caché: cada token vuelve a leer el contexto entero.

Formas: V vocabulario · K candidatos que quedan tras recortar.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Protocol

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor

from enlace.config import schema
from enlace.errors import EnlaceError, UsageError
from enlace.model import Transformer

_UNFINISHED = "\ufffd"


class Tokenizer(Protocol):
    """Lo que hace falta de un tokenizer para generar."""

    @property
    def vocab_size(self) -> int: ...
    @property
    def end_of_text(self) -> int: ...
    def encode(self, text: str) -> NDArray[np.uint16]: ...
    def decode(self, ids: Iterable[int]) -> str: ...


def generate_text(model: Transformer, tokenizer: Tokenizer, sample: schema.Sample) -> Iterator[str]:
    """Continuación de `sample.prompt`, en trozos de texto que nunca cortan un carácter.

    El prompt se presenta como el comienzo de un documento, que es como el modelo los ha visto.
    """
    prompt_ids = [tokenizer.end_of_text, *tokenizer.encode(sample.prompt).tolist()]
    ids = sample_ids(model, prompt_ids, sample, vocab_size=tokenizer.vocab_size, end_of_text=tokenizer.end_of_text)
    return decode_stream(tokenizer, ids)


def sample_ids(
    model: Transformer, prompt_ids: Sequence[int], sample: schema.Sample, *, vocab_size: int, end_of_text: int
) -> Iterator[int]:
    """Hasta `sample.max_new_tokens` ids nuevos; para antes, sin darlo, en `end_of_text`.

    La misma semilla da los mismos ids en el mismo dispositivo. Solo salen ids menores que `vocab_size`, los del
    tokenizer. Si prompt y respuesta no caben en el contexto, se leen los tokens más recientes. El modelo queda en
    eval() mientras se consume y después como estaba. UsageError con un prompt vacío.
    """
    if not prompt_ids:
        raise UsageError("el prompt no tiene ningún token", fix="escribe algo por lo que empezar")
    return _sample(model, list(prompt_ids), sample, vocab_size, end_of_text)


def decode_stream(tokenizer: Tokenizer, ids: Iterable[int]) -> Iterator[str]:
    """El texto de los ids según llegan: unidos, los trozos son `tokenizer.decode` de todos los ids."""
    pending: list[int] = []
    emitted = 0
    for id_ in ids:
        pending.append(id_)
        text = tokenizer.decode(pending)
        # Un � final puede ser un carácter a medias: espera al siguiente token. Lo anterior ya no puede cambiar.
        ready = text.removesuffix(_UNFINISHED)
        if len(ready) > emitted:
            yield ready[emitted:]
        pending, emitted = ([], 0) if ready == text else (pending, len(ready))
    if rest := tokenizer.decode(pending)[emitted:]:
        yield rest


def _sample(
    model: Transformer, ids: list[int], sample: schema.Sample, vocab_size: int, end_of_text: int
) -> Iterator[int]:
    generator = torch.Generator().manual_seed(sample.seed)
    training = model.training
    model.eval()
    try:
        for _ in range(sample.max_new_tokens):
            id_ = pick(_next_logits(model, ids)[:vocab_size], sample, generator)
            if id_ == end_of_text:
                return
            ids.append(id_)
            yield id_
    finally:
        model.train(training)


@torch.inference_mode()
def _next_logits(model: Transformer, ids: list[int]) -> Tensor:
    newest = ids[-model.config.max_sequence_length :]
    ids_BT = torch.tensor([newest], device=model.head_weight.device)
    logits_V = F.linear(model.hidden(ids_BT)[0, -1], model.head_weight).float().cpu()
    if not logits_V.isfinite().all():
        raise EnlaceError(
            "el modelo da valores no finitos",
            why="sus pesos no son finitos o el tipo numérico se le queda corto",
            fix="prueba un punto de control anterior o float32",
        )
    return logits_V


def pick(logits_V: Tensor, sample: schema.Sample, generator: torch.Generator) -> int:
    """Un id al azar según los logits: temperatura, después top-k y después top-p (Holtzman et al., 2020)."""
    # Por debajo del menor float32, dividir por la temperatura sería dividir por cero.
    if sample.temperature < torch.finfo(torch.float32).tiny:
        return int(logits_V.argmax())
    logits_K, ids_K = logits_V.sort(descending=True, stable=True)
    # Restar el máximo antes de dividir: con una temperatura ínfima el cociente no desborda hacia arriba.
    logits_K = (logits_K - logits_K[0])[: sample.top_k or None] / sample.temperature
    probabilities_K = logits_K.softmax(0)
    before_K = probabilities_K.cumsum(0) - probabilities_K
    probabilities_K = probabilities_K.where(before_K < sample.top_p, 0.0)
    return int(ids_K[torch.multinomial(probabilities_K, 1, generator=generator)])
