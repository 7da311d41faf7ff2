"""El orden de los datos: una permutación por época que se calcula elemento a elemento, sin guardarla.

Red de Feistel sobre la rejilla [filas]x[columnas] más pequeña que cubre [0, size): cada ronda suma a una mitad un
hash de la otra, así que se puede deshacer y es una biyección (Luby y Rackoff, 1988). Lo que cae fuera de [0, size)
vuelve a entrar hasta caer dentro (cycle walking: Black y Rogaway, 2002).

Estos números son parte del formato: si cambian, una corrida reanudada vería otros datos.
"""

import hashlib
from math import isqrt

import numpy as np
from numpy.typing import NDArray

_ROUNDS = 8


def derive(seed: int, label: str) -> int:
    """Semilla independiente para cada uso, de 64 bits."""
    return int.from_bytes(_digest(f"{seed}|{label}")[:8], "little")


def permute(seed: int, epoch: int, index: NDArray[np.int64], size: int) -> NDArray[np.int64]:
    """Posición que ocupa cada índice en la permutación de [0, size) de esa semilla y época.

    index: int64 [n] con valores en [0, size). Devuelve int64 [n]. Cada valor depende solo de los argumentos.
    """
    keys = np.frombuffer(_digest(f"{seed}|{epoch}"), dtype="<u8")
    n_rows = isqrt(size - 1) + 1
    n_columns = -(-size // n_rows)
    result = _feistel(index.astype(np.uint64), keys, n_rows, n_columns)
    while (outside := result >= size).any():
        result[outside] = _feistel(result[outside], keys, n_rows, n_columns)
    return result.astype(np.int64)


def _feistel(value: NDArray[np.uint64], keys: NDArray[np.uint64], n_rows: int, n_columns: int) -> NDArray[np.uint64]:
    rows, columns = np.uint64(n_rows), np.uint64(n_columns)
    left, right = value // columns, value % columns
    # El hash se reduce antes de sumar: una suma que desborda 64 bits dejaría de ser una biyección.
    for even, odd in keys.reshape(-1, 2):
        left = (left + _mix(right ^ even) % rows) % rows
        right = (right + _mix(left ^ odd) % columns) % columns
    return left * columns + right


def _mix(value: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Finalizador de SplitMix64 (Steele, Lea y Flood, 2014)."""
    value = (value ^ (value >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    value = (value ^ (value >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return value ^ (value >> np.uint64(31))


def _digest(text: str) -> bytes:
    """Una clave de 64 bits por ronda."""
    return hashlib.blake2b(text.encode("utf-8"), digest_size=8 * _ROUNDS).digest()
