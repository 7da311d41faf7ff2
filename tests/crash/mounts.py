"""Discos de verdad, montados para una prueba: uno en memoria, que se llena, y uno en una imagen, que se corta."""

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest


@contextmanager
def small_disk(folder: Path, size: int) -> Iterator[Path]:
    """Un disco en memoria de `size` bytes."""
    with _mounted("tmpfs", f"size={size}", "tmpfs", folder):
        yield folder


class ImageDisk:
    """Un ext4 en un fichero: copiar el fichero es quedarse con lo que había llegado al disco, y nada más.

    Es lo que el núcleo ya había mandado; el disco que además pierde lo mandado sin confirmar está en power_cut.py.
    """

    def __init__(self, folder: Path, image: Path) -> None:
        self.folder = folder
        self._image = image
        device = folder.stat().st_dev
        self._traffic = Path(f"/sys/dev/block/{os.major(device)}:{os.minor(device)}/stat")

    @contextmanager
    def after_power_cut(self) -> Iterator[Path]:
        """El disco que se encuentra quien enciende después de un corte ahora mismo, con su diario ya repasado."""
        copy = self._image.with_name("cortado.img")
        while True:
            before = self._traffic.read_text()
            shutil.copyfile(self._image, copy)
            if self._traffic.read_text() == before:  # si no, la copia mezcla dos instantes
                break
        with _mounted("ext4", "loop", str(copy), self._image.with_name("cortado")) as folder:
            yield folder


@contextmanager
def image_disk(root: Path) -> Iterator[ImageDisk]:
    """Un ext4 recién hecho, que no adivina a quién se le olvidó el fsync (noauto_da_alloc)."""
    image = root / "disco.img"
    with image.open("wb") as file:
        file.truncate(16 << 20)
    if shutil.which("mkfs.ext4") is None:
        pytest.skip("CORTES DE LUZ SIN PROBAR EN UN DISCO DE VERDAD: falta mkfs.ext4 (e2fsprogs)")
    subprocess.run(["mkfs.ext4", "-q", "-F", str(image)], check=True)
    with _mounted("ext4", "loop,noauto_da_alloc", str(image), root / "disco") as folder:
        yield ImageDisk(folder, image)


@contextmanager
def _mounted(kind: str, options: str, device: str, folder: Path) -> Iterator[Path]:
    """Monta y, pase lo que pase, desmonta; donde no se puede, se salta la prueba diciéndolo."""
    folder.mkdir(exist_ok=True)
    if shutil.which("mount") is None:
        pytest.skip("DISCOS DE VERDAD SIN PROBAR: no hay mount")
    order = ["mount", "-t", kind, "-o", options, device, str(folder)]
    done = subprocess.run(order, capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip(f"DISCOS DE VERDAD SIN PROBAR: hace falta root y poder montar ({done.stderr.strip()})")
    try:
        yield folder
    finally:
        subprocess.run(["umount", str(folder)], check=True)
