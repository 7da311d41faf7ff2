"""Textos casi iguales: MinHash (Broder, 1997) con bandas, y el grupo al que pertenece cada uno."""

import numpy as np
from numpy.typing import NDArray

from enlace.config import schema
from enlace.corpus.clean.words import ngram_ids

Ids = NDArray[np.uint64]
Signatures = NDArray[np.uint32]

_BLOCK = 2048
_SEED = 20_241


def signature(ids: Ids, config: schema.Duplicates) -> Signatures:
    """La firma de un texto a partir de sus palabras: el menor valor de cada función en sus n-gramas; [bandas·filas]."""
    grams = ngram_ids(ids, config.ngram_words)
    if not len(grams):
        grams = ngram_ids(ids, len(ids)) if len(ids) else np.zeros(1, np.uint64)
    folded = (grams ^ (grams >> np.uint64(32))).astype(np.uint32)
    seeds = _seeds(config.bands * config.rows)
    best = np.full(len(seeds), np.iinfo(np.uint32).max, np.uint32)
    for start in range(0, len(folded), _BLOCK):
        best = np.minimum(best, _mixed(folded[start : start + _BLOCK], seeds).min(axis=0))
    return best


def groups(signatures: Signatures, config: schema.Duplicates) -> NDArray[np.int64]:
    """De cada texto, el primero de su grupo [N]: los que coinciden en alguna banda y se parecen lo bastante a él.

    Ocupa unos 40 bytes por texto además de las firmas, que pueden estar en disco.
    """
    parents = np.arange(len(signatures), dtype=np.int64)
    for band in range(config.bands):
        columns = signatures[:, band * config.rows : (band + 1) * config.rows]
        heads, members = _same_band(columns)
        for start in range(0, len(heads), _BLOCK):
            some = slice(start, start + _BLOCK)
            alike = (signatures[heads[some]] == signatures[members[some]]).mean(axis=1) >= config.min_similarity
            for head, member in zip(heads[some][alike], members[some][alike], strict=True):
                _join(parents, int(head), int(member))
    return np.fromiter((_root(parents, place) for place in range(len(parents))), np.int64, len(parents))


def first_of_each(values: Ids) -> NDArray[np.bool_]:
    """Cuáles son la primera vez que sale su valor [N]."""
    firsts = np.zeros(len(values), np.bool_)
    firsts[np.unique(values, return_index=True)[1]] = True
    return firsts


def _same_band(columns: Signatures) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Parejas (primero, otro) de textos con la misma banda."""
    keys = columns[:, 0].astype(np.uint64)
    for column in range(1, columns.shape[1]):
        keys = keys * np.uint64(0x9E3779B97F4A7C15) + columns[:, column]
        keys ^= keys >> np.uint64(29)
    order = np.argsort(keys, kind="stable")
    if not len(order):
        return order, order
    ordered = keys[order]
    starts = np.flatnonzero(np.concatenate(([True], ordered[1:] != ordered[:-1])))
    sizes = np.diff(np.append(starts, len(ordered)))
    heads = np.repeat(order[starts], sizes)
    return heads[heads != order], order[heads != order]


def _mixed(values: NDArray[np.uint32], seeds: NDArray[np.uint32]) -> NDArray[np.uint32]:
    """Una función distinta por semilla: el final de MurmurHash3 (Appleby, 2011) [valores, semillas]."""
    mixed = (values[:, None] ^ seeds) * np.uint32(0x85EBCA6B)
    mixed ^= mixed >> np.uint32(13)
    mixed *= np.uint32(0xC2B2AE35)
    mixed ^= mixed >> np.uint32(16)
    return mixed


def _seeds(count: int) -> NDArray[np.uint32]:
    return np.random.Generator(np.random.PCG64(_SEED)).integers(1, 2**32, count, dtype=np.uint32)


def _root(parents: NDArray[np.int64], place: int) -> int:
    while parents[place] != place:
        parents[place] = parents[parents[place]]
        place = int(parents[place])
    return place


def _join(parents: NDArray[np.int64], one: int, other: int) -> None:
    first, second = sorted((_root(parents, one), _root(parents, other)))
    parents[second] = first
