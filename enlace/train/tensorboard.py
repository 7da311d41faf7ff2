"""Copia de las curvas a TensorBoard (extra `tensorboard`); la verdad sigue siendo log.jsonl."""

from pathlib import Path
from typing import Any

from enlace.errors import InstallationError

SCALARS = ("loss", "z_loss", "bits_per_byte", "validation", "grad_norm", "learning_rate", "scale")


class TensorBoard:
    """Escribe cada registro como escalares. Al reanudar, borra los posteriores al punto de control."""

    def __init__(self, folder: Path, first_step: int) -> None:
        try:
            from torch.utils.tensorboard import SummaryWriter
        except ImportError as error:
            raise InstallationError(
                "la corrida pide TensorBoard y no está instalado",
                where="train.tensorboard",
                fix="scripts/setup.sh --tensorboard, o train.tensorboard=false",
            ) from error
        self._writer = SummaryWriter(str(folder), purge_step=first_step)

    def show(self, record: dict[str, Any]) -> None:
        """Añade los escalares de un paso."""
        for name in SCALARS:
            if record.get(name) is not None:
                self._writer.add_scalar(name, record[name], record["step"])

    def close(self) -> None:
        """Vuelca lo pendiente."""
        self._writer.close()
