"""La mezcla: qué fuente y qué secuencia tocan en cada lugar del orden global."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from enlace.data.order import derive, permute
from enlace.data.source import TokenSource
from enlace.errors import ConfigError, NotFoundError, Problem

# El orden va en bloques de este tamaño, cada uno con la cuota exacta de cada fuente. Es parte del formato del orden.
BLOCK = 1000


class Mixture:
    """Fuentes en proporción a sus pesos. La muestra i es una función pura de (i, semilla): no hay estado.

    Las cuotas de cada bloque son los pesos redondeados a milésimas (restos mayores), así que cualquier prefijo se
    aparta de su proporción menos de un bloque. Cada fuente se recorre entera, en otro orden cada época, antes de
    repetir. ConfigError si un peso es tan pequeño que no le toca ni una muestra por bloque.
    """

    def __init__(self, sources: Sequence[TokenSource], weights: Sequence[float]) -> None:
        self.sources = tuple(sources)
        self._quotas = _quotas(weights)
        starved = [source.name for source, quota in zip(sources, self._quotas, strict=True) if quota == 0]
        if starved:
            raise ConfigError([_too_light(name) for name in starved])

    @property
    def n_tokens(self) -> int:
        """Tokens de todas las fuentes, contados una vez."""
        return sum(source.n_tokens for source in self.sources)

    @property
    def bytes_per_token(self) -> float:
        """Bytes de texto original por token, en la proporción de la mezcla."""
        parts = zip(self.sources, self._quotas.tolist(), strict=True)
        return float(sum(quota * source.n_bytes / source.n_tokens for source, quota in parts) / BLOCK)

    def batch(self, start: int, count: int, sequence_length: int, seed: int) -> NDArray[np.uint16]:
        """Muestras start…start+count-1 del orden global: uint16 [count, sequence_length + 1].

        Levanta lo mismo que `require`.
        """
        self.require(sequence_length)
        source_of, draw = self._draws(start, count, seed)
        batch = np.empty((count, sequence_length + 1), dtype=np.uint16)
        for number, source in enumerate(self.sources):
            rows = np.flatnonzero(source_of == number)
            indices = _shuffled(draw[rows], derive(seed, f"source:{source.name}"), source.n_samples(sequence_length))
            batch[rows] = source.windows(indices, sequence_length)
        return batch

    def require(self, sequence_length: int) -> None:
        """ConfigError si la secuencia no cabe en alguna fuente; NotFoundError si la mezcla está vacía."""
        if not self.sources:
            raise NotFoundError(
                "no hay datos de validación", why="data.validation_fraction es 0", fix="pon una fracción como 0.02"
            )
        short = [source for source in self.sources if source.n_samples(sequence_length) == 0]
        if short:
            raise ConfigError([_too_short(source, sequence_length) for source in short])

    def _draws(self, start: int, count: int, seed: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Para cada lugar: número de fuente y cuántas muestras de esa fuente salieron antes. Ambos int64 [count]."""
        block, position = np.divmod(np.arange(start, start + count), BLOCK)
        source_of, draw = np.empty(count, dtype=np.int64), np.empty(count, dtype=np.int64)
        for number in np.unique(block).tolist():
            here = block == number
            source_in_block, draw_in_block = self._block(number, seed)
            source_of[here], draw[here] = source_in_block[position[here]], draw_in_block[position[here]]
        return source_of, draw

    def _block(self, number: int, seed: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        slot = permute(derive(seed, "mixture"), number, np.arange(BLOCK), BLOCK)
        source_of = np.searchsorted(np.cumsum(self._quotas), slot, side="right")
        draw = np.empty(BLOCK, dtype=np.int64)
        for source, quota in enumerate(self._quotas.tolist()):
            draw[source_of == source] = number * quota + np.arange(quota)
        return source_of, draw


def _shuffled(draw: NDArray[np.int64], seed: int, size: int) -> NDArray[np.int64]:
    """Índice de la secuencia que toca en cada extracción: una permutación distinta cada `size` extracciones."""
    epoch, position = np.divmod(draw, size)
    indices = np.empty_like(draw)
    for number in np.unique(epoch).tolist():
        here = epoch == number
        indices[here] = permute(seed, number, position[here], size)
    return indices


def _quotas(weights: Sequence[float]) -> NDArray[np.int64]:
    """Reparte BLOCK en enteros proporcionales a los pesos, por restos mayores; a igual resto, la primera."""
    ideal = np.asarray(weights, dtype=np.float64) / sum(weights) * BLOCK if weights else np.empty(0)
    quotas = np.floor(ideal).astype(np.int64)
    remainder_order = np.argsort(quotas - ideal, kind="stable")
    quotas[remainder_order[: BLOCK - int(quotas.sum())]] += 1
    return quotas


def _too_light(name: str) -> Problem:
    message = f"el peso es menor que una muestra de cada {BLOCK} y no saldría nunca."
    return Problem(f"data.sources[{name}]", "weight", message, "Súbelo o quita la fuente.")


def _too_short(source: TokenSource, sequence_length: int) -> Problem:
    message = (
        f"la fuente «{source.name}» tiene {source.n_tokens} tokens "
        f"y una secuencia de {sequence_length} necesita {sequence_length + 1}."
    )
    longest = max(source.n_tokens - 1, 0)
    return Problem(
        f"data.sources[{source.name}]",
        "train.sequence_length",
        message,
        f"Bájala a {longest} o menos, añade texto o, si es la parte de validación, sube data.validation_fraction.",
    )
