"""La puerta de la sala: abre las fuentes de una configuración, las comprueba y las mezcla."""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from enlace.config.schema.data import Data, Source
from enlace.data.byte_source import open_text
from enlace.data.mixture import Mixture
from enlace.data.shards import open_shard_set
from enlace.data.source import SplitSource
from enlace.errors import ConfigError, Problem
from enlace.tokenizer import ByteTokenizer


@dataclass(frozen=True)
class Dataset:
    """Los datos de una corrida.

    fingerprint: nombre de la fuente → SHA-256 de su contenido y su reparto; no depende de dónde está.
    Con validation_fraction 0 la validación es una mezcla sin fuentes.
    """

    train: Mixture
    validation: Mixture
    tokenizer_sha256: str
    fingerprint: Mapping[str, str]

    @property
    def bytes_per_token(self) -> float:
        """Bytes de texto por token de validación: bits por byte = nats por token / ln 2 / este número."""
        return (self.validation if self.validation.sources else self.train).bytes_per_token

    def require(self, sequence_length: int) -> None:
        """ConfigError si alguna fuente no da ni una secuencia, de entrenamiento o de validación si la hay."""
        for mixture in (self.train, self.validation):
            if mixture.sources:
                mixture.require(sequence_length)


def open_data(data: Data, vocab_size: int) -> Dataset:
    """Abre y comprueba todas las fuentes.

    NotFoundError si falta alguna, con la orden que la crea; CorruptDataError si algo no se lee o no es lo que se
    escribió; ConfigError si los ids no caben en vocab_size, no se puede apartar validación o los pesos no valen.
    """
    opened = [_open(data, source, vocab_size) for source in data.sources]
    _require_one_tokenizer(data, opened)
    weights = [source.weight for source in data.sources]
    validated = [pair for pair in zip(opened, weights, strict=True) if pair[0].validation.n_tokens]
    return Dataset(
        train=Mixture([part.train for part in opened], weights),
        validation=Mixture([part.validation for part, _ in validated], [weight for _, weight in validated]),
        tokenizer_sha256=opened[0].tokenizer_sha256,
        fingerprint={part.train.name: _fingerprint(part) for part in opened},
    )


def _open(data: Data, source: Source, vocab_size: int) -> SplitSource:
    if data.kind == "shards":
        return open_shard_set(source.name, Path(source.path), vocab_size)
    if vocab_size < ByteTokenizer.vocab_size:
        raise ConfigError([_vocabulary_too_small(vocab_size)])
    return open_text(source.name, Path(source.path), data.validation_fraction)


def _fingerprint(part: SplitSource) -> str:
    return hashlib.sha256(f"{part.train.sha256}|{part.validation.sha256}".encode("ascii")).hexdigest()


def _require_one_tokenizer(data: Data, opened: Sequence[SplitSource]) -> None:
    others = [
        Problem(source.path, f"data.sources[{source.name}]", "su tokenizador no es el de la primera fuente.")
        for source, part in zip(data.sources, opened, strict=True)
        if part.tokenizer_sha256 != opened[0].tokenizer_sha256
    ]
    if others:
        raise ConfigError(others)


def _vocabulary_too_small(vocab_size: int) -> Problem:
    return Problem(
        "data.kind",
        "model.vocab_size",
        f"leer bytes necesita {ByteTokenizer.vocab_size} ids y el modelo tiene {vocab_size}.",
        f"Pon model.vocab_size a {ByteTokenizer.vocab_size}.",
    )
