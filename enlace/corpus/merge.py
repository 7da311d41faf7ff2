"""La segunda etapa: comparar todos los documentos entre sí y publicar los que quedan, partidos y con sus cuentas."""

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from enlace.config import schema
from enlace.corpus.clean.words import words_of
from enlace.corpus.document import Document, to_jsonl_zst
from enlace.corpus.near import Ids, first_of_each, groups
from enlace.corpus.part import Part, line_ids
from enlace.corpus.table import read_documents, to_parquet
from enlace.corpus.tally import Tally
from enlace.durable import Manifest, publish, to_json, verify, write_file

KIND = "documents"
SPLITS = ("train", "validation")
STATS = "stats.json"


@dataclass(frozen=True)
class Decisions:
    """Lo que se sabe al mirar todos a la vez.

    original, distinct: por documento, si es el primero con su texto y el primero de su grupo. repeated: renglones que
    se quedan solo donde salen antes. boilerplate: por fuente, los que se quitan.
    """

    original: NDArray[np.bool_]
    distinct: NDArray[np.bool_]
    repeated: Ids
    boilerplate: Mapping[str, Ids]


def decide(parts: Sequence[Part], config: schema.Duplicates) -> Decisions:
    """Compara todos los documentos, en el orden de las partes."""
    texts = np.concatenate([np.empty(0, np.uint64), *(part.texts() for part in parts)])
    width = config.bands * config.rows
    signatures = np.concatenate([np.empty((0, width), np.uint32), *(part.signatures(width) for part in parts)])
    heads = groups(signatures, config)
    long_lines = np.concatenate([np.empty(0, np.uint64), *(part.long_lines() for part in parts)])
    values, counts = np.unique(long_lines, return_counts=True)
    return Decisions(
        first_of_each(texts),
        heads == np.arange(len(heads)),
        values[counts > config.line_documents],
        {source: _boilerplate(source, parts, config) for source in dict.fromkeys(part.source for part in parts)},
    )


def publish_documents(
    target: Path, parts: Sequence[Part], decisions: Decisions, config: schema.Corpus, info: Mapping[str, Any]
) -> Manifest:
    """Publica `target` con los documentos de cada fuente, aparte los de validación, y sus cuentas en stats.json."""
    tallies: dict[str, Tally] = {}
    writer = _Writer(parts, decisions, config, tallies)
    files: dict[str, Any] = {
        f"{source.name}-{split}.parquet": to_parquet(writer.documents(source.name, split))
        for split in SPLITS
        for source in config.sources
    }
    files[STATS] = _stats(config, parts, tallies)  # la última: se llena mientras se escriben las demás
    return publish(target, files, kind=KIND, info=info, overwrite=True)


def export_jsonl(documents: Path, target: Path) -> list[Path]:
    """Escribe en `target` cada Parquet de un corpus publicado como .jsonl.zst, y da los ficheros.

    NotFoundError o CorruptDataError si el corpus no está o no es lo que se publicó.
    """
    tables = sorted(name for name in verify(documents, KIND).files if name.endswith(".parquet"))
    exported = [target / f"{name.removesuffix('.parquet')}.jsonl.zst" for name in tables]
    for name, path in zip(tables, exported, strict=True):
        write_file(path, to_jsonl_zst(read_documents(documents / name)))
    return exported


def split_of(work: str, fraction: float) -> str:
    """A qué parte va una obra: depende solo de su nombre, así que añadir fuentes no mueve a ninguna."""
    head = int(hashlib.sha256(work.encode("utf-8", "replace")).hexdigest()[:8], 16)
    return "validation" if head < fraction * 2**32 else "train"


class _Writer:
    """Recorre las partes quitando lo repetido."""

    def __init__(
        self, parts: Sequence[Part], decisions: Decisions, config: schema.Corpus, tallies: dict[str, Tally]
    ) -> None:
        self._parts = parts
        self._decisions = decisions
        self._config = config
        self._tallies = tallies
        self._repeated = frozenset(decisions.repeated.tolist())
        self._boilerplate = {source: frozenset(ids.tolist()) for source, ids in decisions.boilerplate.items()}
        self._least_words = {source.name: config.quality[source.quality].min_words for source in config.sources}
        self._seen: set[int] = set()

    def documents(self, source: str, split: str) -> Iterator[Document]:
        """Los documentos de una fuente y una mitad, en orden."""
        tally = self._tallies.setdefault(source, Tally(self._config.samples_per_rule))
        place = -1
        for part in self._parts:
            if part.source != source:
                place += len(part.texts())
                continue
            for document in part.documents():
                place += 1
                if split_of(document.work, self._config.mixture.validation_fraction) == split:
                    kept = self._kept(document, place, tally)
                    if kept is not None:
                        tally.add(f"final.{split}", kept.text)
                        yield kept

    def _kept(self, document: Document, place: int, tally: Tally) -> Document | None:
        text = document.text
        rule = None
        if not self._decisions.original[place]:
            rule = "duplicado"
        elif not self._decisions.distinct[place]:
            rule = "casi_duplicado"
        else:
            text = self._without_repeated_lines(document, tally)
            rule = "todo_repetido" if len(words_of(text)) < self._least_words[document.source] else None
        if rule:
            tally.drop(rule, document.id, document.text)
            return None
        return replace(document, text=text)

    def _without_repeated_lines(self, document: Document, tally: Tally) -> str:
        boilerplate = self._boilerplate[document.source]
        gone: set[int] = set()
        for _, number in line_ids(document.text):
            if number in boilerplate or (number in self._repeated and number in self._seen):
                gone.add(number)
            elif number in self._repeated:
                self._seen.add(number)
        if not gone:
            return document.text
        lines = [line for line in document.text.split("\n") if not line.strip() or line_ids(line)[0][1] not in gone]
        tally.counts["renglones_quitados"] += len(document.text.split("\n")) - len(lines)
        return "\n\n".join(block for block in "\n".join(lines).split("\n\n") if block.strip()).strip()


def _boilerplate(source: str, parts: Sequence[Part], config: schema.Duplicates) -> Ids:
    own = [part for part in parts if part.source == source]
    documents = sum(len(part.texts()) for part in own)
    values, counts = np.unique(np.concatenate([part.lines() for part in own]), return_counts=True)
    return values[counts > max(config.boilerplate_documents, config.boilerplate_share * documents)]


def _stats(config: schema.Corpus, parts: Sequence[Part], tallies: Mapping[str, Tally]) -> Iterator[bytes]:
    sources: dict[str, Any] = {}
    for source in config.sources:
        tally = Tally(config.samples_per_rule)
        for part in parts:
            if part.source == source.name:
                tally.merge(part.tally(config.samples_per_rule))
        tally.merge(tallies[source.name])
        sources[source.name] = tally.to_json()
    train = {name: int(each["counts"].get("final.train.bytes", 0)) for name, each in sources.items()}
    yield to_json({"sources": sources, "mixture": mixture(config, train)})


def mixture(config: schema.Corpus, train_bytes: Mapping[str, int]) -> dict[str, dict[str, float]]:
    """Por fuente: la parte que pide su peso, sus bytes, las veces que se repetirá y la parte que será de verdad."""
    total_weight = sum(source.weight for source in config.sources)
    rows: dict[str, dict[str, float]] = {}
    for source in config.sources:
        share, size = source.weight / total_weight, train_bytes[source.name]
        epochs = 1.0
        if config.mixture.budget_bytes is not None and size:
            epochs = min(config.mixture.max_epochs, config.mixture.budget_bytes * share / size)
        rows[source.name] = {"asked_share": share, "bytes": size, "epochs": epochs, "final_bytes": size * epochs}
    final = sum(row["final_bytes"] for row in rows.values()) or 1.0
    return {name: {**row, "final_share": row["final_bytes"] / final} for name, row in rows.items()}
