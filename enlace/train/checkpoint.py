"""Puntos de control: se escriben en otro hilo, se conservan los que dice la receta y el último bueno no se borra."""

import re
import threading
from collections.abc import Mapping
from pathlib import Path

from enlace.config.schema import Checkpoints
from enlace.durable import Content, publish, remove, require_space, verify
from enlace.durable.space import reading
from enlace.errors import CorruptDataError, warn
from enlace.train.state import KIND, read_state

PREFIX = "step"
_NAME = re.compile(rf"{PREFIX}-\d{{8,}}")


def checkpoint_path(folder: Path, step: int) -> Path:
    """Carpeta del punto de control de ese paso."""
    return folder / f"{PREFIX}-{step:08d}"


def checkpoint_step(path: Path) -> int:
    """Paso de un punto de control por su nombre."""
    return int(path.name.removeprefix(f"{PREFIX}-"))


def list_checkpoints(folder: Path) -> list[Path]:
    """Los puntos de control publicados, del más antiguo al más nuevo (sin verificar); una copia con otro nombre, no."""
    if not folder.is_dir():
        return []
    with reading(folder):
        found = [path for path in folder.iterdir() if _NAME.fullmatch(path.name) and path.is_dir()]
    return sorted(found, key=checkpoint_step)


def size_of(checkpoint: Path) -> int:
    """Bytes que ocupa un punto de control en el disco."""
    with reading(checkpoint):
        return sum(file.stat().st_size for file in checkpoint.iterdir())


class CheckpointWriter:
    """Publica puntos de control de uno en uno, en otro hilo si la receta lo pide.

    Un fallo del hilo se levanta en la siguiente llamada: nunca se pierde en silencio.
    """

    def __init__(self, folder: Path, policy: Checkpoints) -> None:
        self.folder = folder
        self.policy = policy
        self._thread: threading.Thread | None = None
        self._error: BaseException | None = None

    def save(self, step: int, files: Mapping[str, Content], parents: Mapping[str, str]) -> None:
        """Escribe el punto de control de `step`. Espera antes a que termine el anterior."""
        self.wait()
        if not self.policy.asynchronous:
            self._write(step, files, parents)
            return
        self._thread = threading.Thread(target=self._write_quietly, args=(step, files, parents), name="checkpoint")
        self._thread.start()

    def wait(self) -> None:
        """Espera a que no quede nada escribiéndose; levanta el error que hubiera."""
        if self._thread is not None:
            self._thread.join()
            self._thread = None
        self.raise_failure()

    def raise_failure(self) -> None:
        """Levanta el error del último que falló, si falló, sin esperar a nadie."""
        if self._error is not None:
            error, self._error = self._error, None
            raise error

    def _write_quietly(self, step: int, files: Mapping[str, Content], parents: Mapping[str, str]) -> None:
        try:
            self._write(step, files, parents)
        except BaseException as error:
            self._error = error

    def _write(self, step: int, files: Mapping[str, Content], parents: Mapping[str, str]) -> None:
        path = checkpoint_path(self.folder, step)
        if not path.exists():
            self._require_space()
            publish(path, files, kind=KIND, parents=parents, info={"step": step})
        prune(self.folder, self.policy)

    def _require_space(self) -> None:
        """Todos miden lo mismo: si no cabe otro como el último, se dice antes de llenar el disco a los demás."""
        for newest in list_checkpoints(self.folder)[-1:]:
            require_space(self.folder, size_of(newest))


def prune(folder: Path, policy: Checkpoints) -> None:
    """Borra lo que la receta no conserva, después de verificar el más nuevo.

    Si el más nuevo no verifica no se borra nada y se levanta CorruptDataError: los anteriores son los buenos.
    """
    found = list_checkpoints(folder)
    kept = _kept(found, policy)
    doomed = [path for path in found if path not in kept]
    if not doomed:
        return
    verify(found[-1], KIND)
    for path in doomed:
        remove(path)


def _kept(found: list[Path], policy: Checkpoints) -> set[Path]:
    kept = set(found[-policy.keep_last :])
    kept |= {path for path in found if checkpoint_step(path) in policy.keep_steps}
    if policy.keep_best:
        scored = [(score, path) for path in found if (score := _validation(path)) is not None]
        kept |= {min(scored)[1]} if scored else set()
    return kept


def _validation(path: Path) -> float | None:
    """Bits por byte de validación de un punto de control; uno ilegible no compite por ser el mejor."""
    try:
        score: float | None = read_state(path)["validation"]
    except CorruptDataError as error:
        warn(f"{path.name} no se puede leer: {error.what}")
        return None
    return score
