"""Shards: tokens uint16 en disco, mapeados en memoria y nunca cargados enteros.

Un conjunto es una carpeta publicada con dos ficheros por shard:

    train-00000.bin   cabecera de 128 bytes y tokens uint16 little-endian; cada documento acaba en el token de fin
    train-00000.idx   uint64 little-endian [documentos + 1]: token donde empieza cada uno, y el total

Abrirlo lee cada byte para comprobar su SHA-256 (del orden de 1 s por GB) y que su mayor id es el que dice; después
solo se leen las páginas que se usan.
"""

import hashlib
import os
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from struct import Struct
from typing import IO, Literal

import numpy as np
from numpy.typing import NDArray

from enlace.data.source import SplitSource, count_windows, cut_windows
from enlace.durable import Content, Json, Manifest, publish, verify
from enlace.durable.space import writing
from enlace.errors import ConfigError, CorruptDataError, NotFoundError, Problem

KIND = "shards"
Split = Literal["train", "validation"]
_SPLITS: tuple[Split, ...] = ("train", "validation")
_MAX_TEXT_BYTES = 1 << 63
_CHUNK_BYTES = 1 << 20
# magia, versión, token de fin, mayor id, tipo, número de tokens, SHA-256 del tokenizador y SHA-256 de los tokens
_HEADER = Struct("<8sIII4sQ32s32s32x")
_MAGIC, _VERSION, _DTYPE = b"ENLSHARD", 1, b"<u2\0"


@dataclass(frozen=True)
class Shard:
    """Un shard abierto: su cabecera y sus tokens mapeados, uint16 [n_tokens]."""

    path: Path
    end_of_text: int
    max_id: int
    tokenizer_sha256: str
    payload_sha256: str
    tokens: NDArray[np.uint16]


class ShardSource:
    """Los shards de una parte (entrenamiento o validación), uno detrás de otro."""

    def __init__(self, name: str, shards: Sequence[Shard], n_bytes: int) -> None:
        self.name = name
        self.n_bytes = n_bytes
        self.n_tokens = sum(len(shard.tokens) for shard in shards)
        self._shards = tuple(shards)

    @cached_property
    def sha256(self) -> str:
        content = "".join(shard.tokenizer_sha256 + shard.payload_sha256 for shard in self._shards)
        return hashlib.sha256(content.encode("ascii")).hexdigest()

    def n_samples(self, sequence_length: int) -> int:
        return int(self._ends(sequence_length)[-1])

    def windows(self, indices: NDArray[np.int64], sequence_length: int) -> NDArray[np.uint16]:
        ends = self._ends(sequence_length)
        shard_of = np.searchsorted(ends, indices, side="right") - 1
        windows = np.empty((len(indices), sequence_length + 1), dtype=np.uint16)
        for number in np.unique(shard_of).tolist():
            rows = shard_of == number
            local = indices[rows] - ends[number]
            windows[rows] = cut_windows(self._shards[number].tokens, local, sequence_length)
        return windows

    def _ends(self, sequence_length: int) -> NDArray[np.int64]:
        """Secuencias que hay antes de cada shard, y el total: una secuencia nunca cruza de un shard a otro."""
        counts = [count_windows(len(shard.tokens), sequence_length) for shard in self._shards]
        return np.cumsum([0, *counts])


def open_shard_set(name: str, path: Path, vocab_size: int) -> SplitSource:
    """Abre y comprueba un conjunto de shards.

    NotFoundError si no existe; CorruptDataError, con el fichero, si algún byte no es el que se escribió;
    ConfigError, con el shard y el lugar, si un id no cabe en un vocabulario de vocab_size.
    """
    if not os.path.lexists(path):
        raise NotFoundError(
            "no existe la carpeta de shards",
            where=str(path),
            why="los shards se preparan aparte, antes de entrenar",
            fix="corrige la ruta en data.sources, o entrena con textos: configs/data/smoke.yaml",
        )
    manifest = verify(path, KIND)
    text_bytes = _text_bytes(path, manifest)
    files = sorted(file for file in manifest.files if file.startswith(_SPLITS) and file.endswith(".bin"))
    shards = {file: _open_shard(path / file) for file in files}
    tokenizers = {shard.tokenizer_sha256 for shard in shards.values()}
    if len(tokenizers) != 1:
        raise _corrupt(path, "no tiene shards, o vienen de tokenizadores distintos")
    _require_ids_fit(list(shards.values()), vocab_size)
    train, validation = (_select(name, path, split, shards, text_bytes) for split in _SPLITS)
    return SplitSource(train, validation, tokenizers.pop())


def write_shard_set(
    path: Path,
    splits: Mapping[Split, Iterable[NDArray[np.uint16]]],
    *,
    tokenizer_sha256: str,
    end_of_text: int,
    text_bytes: Mapping[Split, int],
    shard_tokens: int,
    parents: Mapping[str, str] = {},
) -> Manifest:
    """Publica en `path` los documentos (uint16 [n], sin el token de fin) de cada parte, y devuelve su manifiesto.

    Los documentos se recorren una vez y no se guardan en memoria: esperan en ficheros temporales del mismo disco.
    Cada shard se cierra al llegar a shard_tokens. text_bytes, los bytes de UTF-8 del texto de cada parte, se lee al
    final: quien tokeniza sobre la marcha puede ir contándolos.
    """
    files: dict[str, Content] = {}
    with ExitStack() as spools, writing(path):
        for split, documents in splits.items():
            for number, spool in enumerate(_spooled(documents, end_of_text, shard_tokens, path, spools)):
                files[f"{split}-{number:05d}.bin"] = spool.content(bytes.fromhex(tokenizer_sha256), end_of_text)
                files[f"{split}-{number:05d}.idx"] = np.array(spool.starts, dtype="<u8").tobytes()
        info: dict[str, Json] = {"text_bytes": {split: text_bytes[split] for split in splits}}
        return publish(path, files, kind=KIND, parents=parents, info=info)


class _Spool:
    """Los tokens de un shard a la espera de su cabecera, que lleva el total y la huella."""

    def __init__(self, stream: IO[bytes]) -> None:
        self.starts = [0]
        self._stream = stream
        self._digest = hashlib.sha256()
        self._max_id = 0

    def add(self, document: NDArray[np.uint16]) -> None:
        data = document.astype("<u2", casting="safe").tobytes()
        self._stream.write(data)
        self._digest.update(data)
        self._max_id = max(self._max_id, int(document.max()))
        self.starts.append(self.starts[-1] + len(document))

    def content(self, tokenizer: bytes, end_of_text: int) -> Iterator[bytes]:
        payload = self._digest.digest()
        yield _HEADER.pack(_MAGIC, _VERSION, end_of_text, self._max_id, _DTYPE, self.starts[-1], tokenizer, payload)
        self._stream.seek(0)
        while chunk := self._stream.read(_CHUNK_BYTES):
            yield chunk


def _spooled(
    documents: Iterable[NDArray[np.uint16]], end_of_text: int, shard_tokens: int, path: Path, stack: ExitStack
) -> Iterator[_Spool]:
    folder = next(parent for parent in path.absolute().parents if parent.is_dir())
    spool = None
    for document in documents:
        if spool is None:
            spool = _Spool(stack.enter_context(tempfile.TemporaryFile(dir=folder)))
        spool.add(np.append(document, np.uint16(end_of_text)))
        if spool.starts[-1] >= shard_tokens:
            yield spool
            spool = None
    if spool is not None:
        yield spool


def _open_shard(path: Path) -> Shard:
    with path.open("rb") as file:
        header = file.read(_HEADER.size)
    if len(header) != _HEADER.size:
        raise _corrupt(path, "es más corto que su cabecera")
    magic, version, end_of_text, max_id, dtype, n_tokens, tokenizer, payload = _HEADER.unpack(header)
    if (magic, version, dtype) != (_MAGIC, _VERSION, _DTYPE):
        raise _corrupt(path, f"no es un shard de la versión {_VERSION}")
    if n_tokens == 0 or path.stat().st_size != _HEADER.size + 2 * n_tokens:
        raise _corrupt(path, f"la cabecera dice {n_tokens} tokens y su tamaño no cuadra")
    tokens: NDArray[np.uint16] = np.memmap(path, dtype="<u2", mode="r", offset=_HEADER.size, shape=(n_tokens,))
    return Shard(path, end_of_text, max_id, tokenizer.hex(), payload.hex(), tokens)


def _select(
    name: str, path: Path, split: Split, shards: Mapping[str, Shard], text_bytes: Mapping[str, int]
) -> ShardSource:
    source = ShardSource(
        name, [shard for file, shard in shards.items() if file.startswith(split)], text_bytes.get(split, 0)
    )
    if source.n_tokens and not source.n_bytes:
        raise _corrupt(path, f"su manifiesto no dice cuántos bytes de texto hay en {split}")
    return source


def _text_bytes(path: Path, manifest: Manifest) -> dict[str, int]:
    counts = manifest.info.get("text_bytes")
    if not isinstance(counts, dict) or not all(type(n) is int and 0 <= n < _MAX_TEXT_BYTES for n in counts.values()):
        raise _corrupt(path, "su manifiesto no dice cuántos bytes de texto hay en cada parte")
    return counts


def _require_ids_fit(shards: Sequence[Shard], vocab_size: int) -> None:
    for shard in shards:
        # La cabecera puede mentir, y un id de más es leer fuera del embedding.
        if int(shard.tokens.max()) != shard.max_id:
            raise _corrupt(shard.path, f"dice que su mayor id es {shard.max_id} y no lo es")
        if shard.max_id >= vocab_size:
            raise ConfigError([_id_does_not_fit(shard, vocab_size)])


def _id_does_not_fit(shard: Shard, vocab_size: int) -> Problem:
    offset = next(
        start + int(np.argmax(chunk >= vocab_size))
        for start in range(0, len(shard.tokens), _CHUNK_BYTES)
        if (chunk := shard.tokens[start : start + _CHUNK_BYTES]).max() >= vocab_size
    )
    message = f"el token {offset} es el id {shard.tokens[offset]} y el vocabulario del modelo es {vocab_size}."
    return Problem(str(shard.path), "model.vocab_size", message, f"Ponlo a {shard.max_id + 1} o más.")


def _corrupt(path: Path, why: str) -> CorruptDataError:
    return CorruptDataError(
        "el shard no es lo que se guardó", where=str(path), why=why, fix="recupéralo de una copia o vuelve a crearlo"
    )
