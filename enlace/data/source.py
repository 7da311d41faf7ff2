"""Una fuente de tokens: una tira larga que se corta en secuencias."""

from dataclasses import dataclass
from typing import Protocol, TypeVar

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

Id = TypeVar("Id", bound=np.generic)


class TokenSource(Protocol):
    """Lo que la mezcla necesita de una fuente, venga de texto o de shards."""

    @property
    def name(self) -> str: ...

    @property
    def sha256(self) -> str:
        """Huella del contenido, sin la ruta."""
        ...

    @property
    def n_bytes(self) -> int:
        """Bytes de UTF-8 del texto original, sin marcas entre documentos."""
        ...

    @property
    def n_tokens(self) -> int: ...

    def n_samples(self, sequence_length: int) -> int:
        """Secuencias que caben en la fuente."""
        ...

    def windows(self, indices: NDArray[np.int64], sequence_length: int) -> NDArray[np.uint16]:
        """Las secuencias pedidas, uint16 [n, sequence_length + 1]: entradas y, corridas un lugar, objetivos."""
        ...


@dataclass(frozen=True)
class SplitSource:
    """Una fuente abierta: la parte con la que se entrena, la que se aparta (quizá vacía) y su tokenizador."""

    train: TokenSource
    validation: TokenSource
    tokenizer_sha256: str


def count_windows(n_tokens: int, sequence_length: int) -> int:
    """Secuencias de sequence_length + 1 tokens; la última de una y la primera de la siguiente coinciden."""
    return max(0, n_tokens - 1) // sequence_length


def cut_windows(tokens: NDArray[Id], indices: NDArray[np.int64], sequence_length: int) -> NDArray[Id]:
    """Copia las secuencias pedidas de una tira [n_tokens] sin leer el resto: [n, sequence_length + 1]."""
    starts: NDArray[Id] = sliding_window_view(tokens, sequence_length + 1)[::sequence_length]
    return starts[indices]
