"""Los verbos con los que se toca el disco. Las pruebas los heredan para apuntarlos o para hacerlos fallar."""

import contextlib
import os
from io import FileIO
from pathlib import Path
from typing import TypeAlias

Buffer: TypeAlias = bytes | memoryview


class Disk:
    """El disco de verdad: cada método es una llamada al sistema, sin colchones, y deja pasar su OSError.

    Lo escrito está a salvo de un corte solo tras `fsync`, y un nombre creado, cambiado o borrado solo tras
    `fsync_dir` de su carpeta.
    """

    def mkdir(self, path: Path) -> None:
        """Crea una carpeta que no existía."""
        path.mkdir()

    def create(self, path: Path) -> FileIO:
        """Crea un fichero que no existía y lo abre para escribir."""
        return path.open("xb", buffering=0)

    def append(self, path: Path) -> FileIO:
        """Abre un fichero, que crea si falta, para escribir solo al final."""
        return path.open("ab", buffering=0)

    def write(self, file: FileIO, data: Buffer) -> None:
        """Escribe todos los bytes, aunque el sistema los acepte por partes."""
        view = memoryview(data)
        if view.nbytes == 0:
            return  # cast rechaza las formas con algún cero
        view = view.cast("B")
        while view:
            view = view[file.write(view) :]

    def truncate(self, file: FileIO, size: int) -> None:
        """Corta el fichero a `size` bytes."""
        file.truncate(size)

    def fsync(self, file: FileIO) -> None:
        """Vuelve cuando el contenido del fichero está en el disco."""
        os.fsync(file.fileno())

    def rename(self, source: Path, target: Path) -> None:
        """Cambia un nombre de una vez; si `target` es un fichero, lo sustituye."""
        source.rename(target)

    def fsync_dir(self, path: Path) -> None:
        """Vuelve cuando los nombres de la carpeta están en el disco."""
        descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)

    def unlink(self, path: Path) -> None:
        """Borra un nombre que no es carpeta."""
        path.unlink()

    def rmdir(self, path: Path) -> None:
        """Borra una carpeta vacía."""
        path.rmdir()


DISK = Disk()


def make_folders(folder: Path, disk: Disk) -> None:
    """Crea la carpeta y las que falten por encima, con cada nombre a salvo antes de colgar nada de él."""
    if folder.is_dir():
        return
    make_folders(folder.parent, disk)
    with contextlib.suppress(FileExistsError):  # otro hilo o proceso puede crearla a la vez
        disk.mkdir(folder)
    disk.fsync_dir(folder.parent)
