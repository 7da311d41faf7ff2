"""Qué documentos se apartan para validar: lo decide solo su identidad, así que añadir fuentes no mueve a nadie."""

import hashlib
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray


def validation_mask(ids: Sequence[str], fraction: float) -> NDArray[np.bool_]:
    """True en los documentos de validación, bool [n].

    Con dos documentos distintos o más y una fracción mayor que cero, siempre hay alguno a cada lado.
    """
    position = np.array([_position(id_) for id_ in ids])
    mask: NDArray[np.bool_] = position < fraction
    if fraction > 0 and not mask.any():
        mask = position == position.min()
    if mask.all():
        mask = position < position.max()
    return mask


def _position(id_: str) -> float:
    """Lugar del documento en [0, 1), uniforme."""
    digest = hashlib.blake2b(id_.encode("utf-8", errors="surrogatepass"), digest_size=8).digest()
    # 53 bits: los que un float64 guarda exactos.
    return (int.from_bytes(digest, "little") >> 11) / 2**53
