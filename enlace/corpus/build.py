"""Un corpus entero, de la configuración al informe. Se puede cortar en cualquier momento: se sigue por fichero."""

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from multiprocessing import get_context
from pathlib import Path
from typing import Literal

from enlace.config import schema
from enlace.corpus.contamination import forbidden_ids
from enlace.corpus.merge import STATS, decide, publish_documents
from enlace.corpus.near import Ids
from enlace.corpus.part import Part, Task, prepare
from enlace.corpus.read import source_files
from enlace.corpus.report import write_report
from enlace.durable import lock, read_json, remove, sweep
from enlace.errors import CorruptDataError, say

DOCUMENTS, PARTS = "documents", "parts"
Executor = Literal["local", "ray"]


def build(
    config: schema.Corpus, *, workers: int, strict: bool = False, executor: Executor | None = None
) -> dict[str, object]:
    """Construye el corpus en `config.output` y devuelve sus cuentas.

    El resultado son los mismos bytes con cualquier número de procesos. Lo que no se puede leer se salta y se cuenta;
    con `strict`, CorruptDataError y no se publica nada. executor: quién limpia los ficheros (ver `cluster`); None, los
    procesos de esta máquina.
    """
    output = Path(config.output)
    folder = output / PARTS
    folder.mkdir(parents=True, exist_ok=True)
    with lock(output / ".lock"):
        sweep(output)
        sweep(folder)
        seconds: dict[str, float] = {}
        with _timed(seconds, "evaluación"):
            forbidden = forbidden_ids(config.contamination)
        tasks = _tasks(config, folder)
        with _timed(seconds, "limpiar"):
            if executor is not None:
                from enlace.corpus.cluster import prepare_with  # es un extra: solo lo paga quien lo pide

                prepare_with(executor, tasks, config, workers)
            parts = _prepare_all(tasks, config, forbidden, workers)
        unread = _unread(parts, config)
        if strict and unread:
            raise CorruptDataError("hay ficheros que no se pueden leer", why="\n".join(unread[:20]), fix="quítalos")
        with _timed(seconds, "comparar"):
            decisions = decide(parts, config.duplicates)
        with _timed(seconds, "publicar"):
            info = {"sources": [source.name for source in config.sources], "config": config.model_dump(mode="json")}
            publish_documents(output / DOCUMENTS, parts, decisions, config, info)
        _remove_stale(folder, parts)
        stats = read_json(output / DOCUMENTS / STATS)
        if not isinstance(stats, dict):
            raise CorruptDataError("no son unas cuentas", where=str(output / DOCUMENTS / STATS))
        write_report(output, config, stats, seconds)
    return {**stats, "unread": unread}


def _tasks(config: schema.Corpus, folder: Path) -> list[Task]:
    """Un fichero, una tarea; en el orden de la configuración y de los nombres."""
    tasks = []
    for source in config.sources:
        root = Path(source.path)
        for file in source_files(root):
            name = file.name if file == root else file.relative_to(root).as_posix()
            tasks.append(Task(source, file, name, folder))
    return tasks


def _prepare_all(tasks: Sequence[Task], config: schema.Corpus, forbidden: Ids, workers: int) -> list[Part]:
    if workers <= 1 or len(tasks) == 1:
        return [_noted(prepare(task, config, forbidden), number, tasks) for number, task in enumerate(tasks, 1)]
    # Procesos nuevos y no copias de este: puede tener hilos.
    with get_context("spawn").Pool(min(workers, len(tasks)), _start, (config, forbidden)) as pool:
        return [_noted(part, number, tasks) for number, part in enumerate(pool.imap(_prepare, tasks), 1)]


_shared: tuple[schema.Corpus, Ids] | None = None


def _start(config: schema.Corpus, forbidden: Ids) -> None:
    global _shared
    _shared = config, forbidden


def _prepare(task: Task) -> Part:
    if _shared is None:
        raise RuntimeError("el proceso no ha empezado por _start")
    return prepare(task, *_shared)


def _noted(part: Part, number: int, tasks: Sequence[Task]) -> Part:
    say(f"▸ {number} de {len(tasks)}: {part.source}/{part.name}")
    return part


def _unread(parts: Sequence[Part], config: schema.Corpus) -> list[str]:
    found = []
    for part in parts:
        rows = part.tally(config.samples_per_rule)
        if rows.counts["ficheros_que_no_se_leen"]:
            reason = next((row[2] for row in rows.samples.get("no_se_lee", []) if "#" not in row[1]), "")
            found.append(f"{part.source}/{part.name}: {reason}")
    return found


def _remove_stale(folder: Path, parts: Sequence[Part]) -> None:
    current = {part.folder for part in parts}
    for old in sorted(folder.iterdir()):
        if old not in current:
            remove(old)


@contextmanager
def _timed(seconds: dict[str, float], stage: str) -> Iterator[None]:
    start = time.perf_counter()
    yield
    seconds[stage] = time.perf_counter() - start
