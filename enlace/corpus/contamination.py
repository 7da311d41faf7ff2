"""Que nada de lo que se usa para evaluar entre en el corpus."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import IO

import numpy as np

from enlace.config import schema
from enlace.corpus.clean.words import ngram_ids, word_ids, words_of
from enlace.corpus.near import Ids
from enlace.corpus.read.raw import decode
from enlace.durable.plain import files_in
from enlace.durable.space import reading
from enlace.errors import CorruptDataError, NotFoundError


def forbidden_ids(config: schema.Contamination) -> Ids:
    """Los n-gramas de todos los ficheros de evaluación, ordenados y sin repetir.

    Las frases más cortas que un n-grama no cuentan: están en cualquier sitio. NotFoundError o CorruptDataError si falta
    uno o no se puede leer: seguir sin él sería contaminar sin saberlo.
    """
    found = [ngram_ids(word_ids(words_of(text)), config.words) for text in _texts(config)]
    return np.unique(np.concatenate([np.empty(0, np.uint64), *found]))


def is_contaminated(ids: Ids, forbidden: Ids, words: int) -> bool:
    """Si el texto, dado por sus palabras, comparte algún n-grama con los de evaluación."""
    if not len(forbidden):
        return False
    grams = ngram_ids(ids, words)
    places = np.searchsorted(forbidden, grams).clip(max=len(forbidden) - 1)
    return bool((forbidden[places] == grams).any())


def _texts(config: schema.Contamination) -> Iterator[str]:
    for name in config.files:
        path = Path(name)
        if not path.exists():
            raise NotFoundError("falta un fichero de evaluación", where=name, fix="corrige contamination.files")
        for file in files_in(path) if path.is_dir() else [path]:
            with reading(file), file.open("rb") as stream:
                yield from _texts_of(stream, file)


def _texts_of(stream: IO[bytes], file: Path) -> Iterator[str]:
    content = decode(stream.read())
    if file.suffix != ".jsonl":
        yield from content.split("\n\n")
        return
    for number, line in enumerate(content.split("\n"), 1):
        if line.strip():
            try:
                yield from _strings(json.loads(line))
            except (ValueError, RecursionError) as error:
                raise CorruptDataError("no es JSON", where=f"{file}:{number}", fix="corrígelo o quítalo") from error


def _strings(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for each in value.values():
            yield from _strings(each)
    elif isinstance(value, list):
        for each in value:
            yield from _strings(each)
