"""La calidad de un texto, regla a regla: la primera que no se cumple dice su nombre."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from enlace.config import schema
from enlace.corpus.clean.words import ngram_ids, word_ids, words_of

# Las de FineWeb-2 para el español.
STOP_WORDS = frozenset("de la en el y a que del los se por un con una las su".split())
_SYMBOLS = re.compile(r"[#…]|\.\.\.")
_CODE = re.compile(r"[{}<>\[\]=;|\\_$%^~`/@]")
_ACCENTED_WORD = re.compile(r"[áéíóúüñÁÉÍÓÚÜÑ]\w*")
# Lo que hay entre dos espacios y no tiene ninguna letra.
_WITHOUT_LETTERS = re.compile(r"(?<!\S)(?:[^\w\s]|[\d_])+(?!\S)")
_BULLETS = ("-", "*", "•", "●", "–", "·", "▪", "◦")
_ENDINGS = (".", "!", "?", "…", ":", ";", "»", "”", '"', "'", ")")
_ELLIPSIS = ("...", "…")
# Con menos palabras no hay estadística: las reglas de reparto no se miran.
_FEW_WORDS = 60


@dataclass(frozen=True)
class Measured:
    """Un texto y lo que se mira de él."""

    text: str
    lines: list[str]
    words: list[str]
    ids: NDArray[np.uint64]


def measure(text: str) -> Measured:
    """Lo que las reglas necesitan, una sola vez."""
    words = words_of(text)
    return Measured(text, [line for line in text.split("\n") if line], words, word_ids(words))


def broken_rule(measured: Measured, limits: schema.Quality) -> str | None:
    """El nombre de la primera regla que el texto no cumple, o None."""
    return next(_broken(measured, limits), None)


def _broken(measured: Measured, limits: schema.Quality) -> Iterator[str]:
    count = len(measured.words)
    if count < limits.min_words:
        yield "muy_corto"
    if count > limits.max_words:
        yield "muy_largo"
    if not count:
        return
    yield from _broken_characters(measured, limits)
    yield from _broken_words(measured, limits)
    if count >= _FEW_WORDS:
        yield from _broken_lines(measured, limits)
        yield from _broken_repetition(measured, limits)


def _broken_characters(measured: Measured, limits: schema.Quality) -> Iterator[str]:
    text, size = measured.text, len(measured.text)
    letters = sum(map(len, _LETTER_RUNS.findall(text))) or 1
    if _over(text.count("\ufffd") / size, limits.max_lost_characters):
        yield "caracteres_perdidos"
    if _over(len(_CODE.findall(text)) / size, limits.max_code_characters):
        yield "codigo"
    if _over(sum(map(len, _DIGIT_RUNS.findall(text))) / size, limits.max_digits):
        yield "cifras"
    if _over(sum(map(len, _CAPITAL_RUNS.findall(text))) / letters, limits.max_uppercase):
        yield "mayusculas"


_LETTER_RUNS = re.compile(r"[^\W\d_]+")
_DIGIT_RUNS = re.compile(r"\d+")
_CAPITAL_RUNS = re.compile(r"[A-ZÁÉÍÓÚÜÑ]{2,}")


def _broken_words(measured: Measured, limits: schema.Quality) -> Iterator[str]:
    words, count = measured.words, len(measured.words)
    mean = sum(map(len, words)) / count
    if not limits.min_mean_word_length <= mean <= limits.max_mean_word_length:
        yield "largo_de_palabra"
    tokens = len(measured.text.split())
    if 1 - len(_WITHOUT_LETTERS.findall(measured.text)) / tokens < limits.min_alphabetic_words:
        yield "pocas_letras"
    present = STOP_WORDS.intersection(words)
    if len(present) < limits.min_stop_words:
        yield "sin_palabras_vacias"
    if _over(len(_SYMBOLS.findall(measured.text)) / count, limits.max_symbols_per_word):
        yield "simbolos"
    if count >= _FEW_WORDS and limits.min_accented_words is not None:
        if len(_ACCENTED_WORD.findall(measured.text)) / count < limits.min_accented_words:
            yield "sin_tildes"


def _broken_lines(measured: Measured, limits: schema.Quality) -> Iterator[str]:
    lines, count = measured.lines, len(measured.lines)
    if _over(sum(line.startswith(_BULLETS) for line in lines) / count, limits.max_bullet_lines):
        yield "vinetas"
    if _over(sum(line.endswith(_ELLIPSIS) for line in lines) / count, limits.max_ellipsis_lines):
        yield "puntos_suspensivos"
    if limits.min_punctuated_lines is not None:
        if sum(line.endswith(_ENDINGS) for line in lines) / count < limits.min_punctuated_lines:
            yield "renglones_sin_punto"
    if _over(count / len(measured.words), limits.max_lines_per_word):
        yield "muchos_renglones"
    if _over(1 - len(set(lines)) / count, limits.max_repeated_lines):
        yield "renglones_repetidos"


def _broken_repetition(measured: Measured, limits: schema.Quality) -> Iterator[str]:
    lengths = np.fromiter(map(len, measured.words), np.int64, len(measured.words))
    total = int(lengths.sum())
    for rule, sizes, share in (
        ("ngrama_repetido", limits.max_top_ngram, _top_share),
        ("ngramas_repetidos", limits.max_repeated_ngrams, _repeated_share),
    ):
        for size, limit in (sizes or {}).items():
            if share(measured.ids, lengths, int(size)) / total > limit:
                yield rule


def _top_share(ids: NDArray[np.uint64], lengths: NDArray[np.int64], size: int) -> int:
    """Letras que ocupa el n-grama más repetido, si se repite."""
    _, first, counts = np.unique(ngram_ids(ids, size), return_index=True, return_counts=True)
    if not len(counts) or counts.max() == 1:
        return 0
    widths = np.convolve(lengths, np.ones(size, np.int64), "valid")[first]
    return int((counts * widths)[counts > 1].max())


def _repeated_share(ids: NDArray[np.uint64], lengths: NDArray[np.int64], size: int) -> int:
    """Letras de las palabras que están en algún n-grama ya visto."""
    grams = ngram_ids(ids, size)
    _, inverse, first = _positions(grams)
    again = np.flatnonzero(first[inverse] != np.arange(len(grams)))
    if not len(again):
        return 0
    covered = np.zeros(len(ids) + 1, np.int64)
    np.add.at(covered, again, 1)
    np.add.at(covered, again + size, -1)
    return int(lengths[np.cumsum(covered[:-1]) > 0].sum())


def _positions(grams: NDArray[np.uint64]) -> tuple[NDArray[np.uint64], NDArray[np.intp], NDArray[np.intp]]:
    values, first, inverse = np.unique(grams, return_index=True, return_inverse=True)
    return values, inverse, first


def _over(value: float, limit: float | None) -> bool:
    return limit is not None and value > limit
