"""Preparar las partes con los ejecutores de datatrove, para un corpus que no cabe en una máquina.

Cada parte es la misma función que usa `build`: después, `build` las encuentra hechas y solo le queda comparar. Las
máquinas tienen que ver las mismas carpetas. datatrove se manda las tareas con dill, que es pickle: solo entre máquinas
tuyas.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from datatrove.pipeline.base import PipelineStep

from enlace.config import schema
from enlace.corpus.contamination import forbidden_ids
from enlace.corpus.part import Task, prepare


class PrepareParts(PipelineStep):  # type: ignore[misc]
    """Un paso de datatrove que prepara los ficheros que le tocan."""

    name = "preparar partes"
    type = "ENLACE"

    def __init__(self, tasks: Sequence[Task], config: schema.Corpus) -> None:
        super().__init__()
        self._tasks = list(tasks)
        self._config = config

    def run(self, data: Any = None, rank: int = 0, world_size: int = 1) -> Iterator[Any]:
        """Prepara uno de cada `world_size` ficheros, empezando por el número `rank`."""
        forbidden = forbidden_ids(self._config.contamination)
        for task in self._tasks[rank::world_size]:
            prepare(task, self._config, forbidden)
        yield from ()


def prepare_with(executor: str, tasks: Sequence[Task], config: schema.Corpus, workers: int) -> None:
    """Prepara todas las partes con `local` o con `ray`: en el Ray que haya o, si no, en uno de esta máquina."""
    options = {
        "pipeline": [PrepareParts(tasks, config)],
        "tasks": min(workers, len(tasks)),
        "workers": workers,
        "logging_dir": str((Path(config.output) / "cluster").resolve()),
        "skip_completed": False,  # lo hecho lo sabe cada parte, que mira su huella
    }
    if executor == "local":
        from datatrove.executor.local import LocalPipelineExecutor

        LocalPipelineExecutor(**options, start_method="spawn").run()
        return
    import ray
    from datatrove.executor.ray import RayPipelineExecutor

    if not ray.is_initialized():
        ray.init(num_cpus=workers, include_dashboard=False, log_to_driver=False)
    RayPipelineExecutor(**options, mem_per_cpu_gb=1).run()
