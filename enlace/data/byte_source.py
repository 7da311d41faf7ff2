"""Texto leído byte a byte: sin tokenizador que entrenar ni shards que preparar."""

import hashlib
from functools import cached_property
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from enlace.data.source import SplitSource, count_windows, cut_windows
from enlace.data.split import validation_mask
from enlace.data.text import read_documents
from enlace.errors import ConfigError, NotFoundError, Problem
from enlace.tokenizer import ByteTokenizer

# UTF-8 nunca usa 0xFF: marca el fin de cada documento y la tira ocupa un byte por token, no dos.
_END = b"\xff"
_IDS = np.arange(256, dtype=np.uint16)
_IDS[0xFF] = ByteTokenizer.end_of_text


class ByteSource:
    """Documentos enteros en memoria, cada uno seguido de su token de fin."""

    def __init__(self, name: str, documents: list[bytes]) -> None:
        self.name = name
        self.n_bytes = sum(len(document) for document in documents)
        self._content = b"".join(document + _END for document in documents)
        self._tokens = np.frombuffer(self._content, dtype=np.uint8)
        self.n_tokens = len(self._tokens)

    @cached_property
    def sha256(self) -> str:
        return hashlib.sha256(self._content).hexdigest()

    def n_samples(self, sequence_length: int) -> int:
        return count_windows(self.n_tokens, sequence_length)

    def windows(self, indices: NDArray[np.int64], sequence_length: int) -> NDArray[np.uint16]:
        return _IDS[cut_windows(self._tokens, indices, sequence_length)]


def open_text(name: str, path: Path, validation_fraction: float) -> SplitSource:
    """Lee los documentos y los reparte; con fracción 0 la validación queda vacía.

    NotFoundError si no hay documentos, CorruptDataError si alguno no se lee y ConfigError si no se pueden repartir.
    """
    documents = list(read_documents(path))
    if not documents:
        raise NotFoundError("no hay documentos", where=str(path), why="los ficheros están vacíos")
    in_validation = validation_mask([document.id for document in documents], validation_fraction)
    if validation_fraction > 0 and not in_validation.any():
        raise ConfigError([_cannot_split(path)])
    texts: tuple[list[bytes], list[bytes]] = ([], [])
    for document, is_validation in zip(documents, in_validation.tolist(), strict=True):
        texts[is_validation].append(document.text.encode("utf-8"))
    return SplitSource(ByteSource(name, texts[0]), ByteSource(name, texts[1]), ByteTokenizer().sha256)


def _cannot_split(path: Path) -> Problem:
    return Problem(
        str(path),
        "data.validation_fraction",
        "para apartar validación hacen falta al menos dos documentos distintos.",
        "Parte el texto en varios ficheros .txt o en varias líneas .jsonl, o pon la fracción a 0.",
    )
