"""Discos para las pruebas: escriben en el de verdad y además apuntan, fallan o mueren en el verbo que se les diga."""

import errno
import os
import signal
from io import FileIO
from pathlib import Path

from enlace.durable import Buffer, Disk


class TappedDisk(Disk):
    """Llama a `before` antes de cada verbo y a `after` cuando ya se ha hecho."""

    def before(self, verb: str) -> None:
        pass

    def after(self, verb: str, path: Path, *details: object) -> None:
        pass

    def mkdir(self, path: Path) -> None:
        self.before("mkdir")
        super().mkdir(path)
        self.after("mkdir", path)

    def create(self, path: Path) -> FileIO:
        self.before("create")
        file = super().create(path)
        self.after("create", path)
        return file

    def append(self, path: Path) -> FileIO:
        self.before("append")
        file = super().append(path)
        self.after("append", path)
        return file

    def write(self, file: FileIO, data: Buffer) -> None:
        self.before("write")
        super().write(file, data)
        self.after("write", Path(file.name), bytes(data))

    def truncate(self, file: FileIO, size: int) -> None:
        self.before("truncate")
        super().truncate(file, size)
        self.after("truncate", Path(file.name), size)

    def fsync(self, file: FileIO) -> None:
        self.before("fsync")
        super().fsync(file)
        self.after("fsync", Path(file.name))

    def rename(self, source: Path, target: Path) -> None:
        self.before("rename")
        super().rename(source, target)
        self.after("rename", source, target)

    def fsync_dir(self, path: Path) -> None:
        self.before("fsync_dir")
        super().fsync_dir(path)
        self.after("fsync_dir", path)

    def unlink(self, path: Path) -> None:
        self.before("unlink")
        super().unlink(path)
        self.after("unlink", path)

    def rmdir(self, path: Path) -> None:
        self.before("rmdir")
        super().rmdir(path)
        self.after("rmdir", path)


class RecordingDisk(TappedDisk):
    """Apunta cada verbo en `log` como (verbo, ruta, …); la prueba intercala lo que se ha prometido con `note`."""

    def __init__(self) -> None:
        self.log: list[tuple[object, ...]] = []

    def after(self, verb: str, path: Path, *details: object) -> None:
        self.log.append((verb, path, *details))

    def note(self, event: str, what: object) -> None:
        self.log.append((event, what))


class ForgetfulDisk(RecordingDisk):
    """Un disco cuyo `verb` no llega a hacer nada: el protocolo mal escrito que el enumerador tiene que cazar."""

    def __init__(self, verb: str) -> None:
        super().__init__()
        self._verb = verb

    def after(self, verb: str, path: Path, *details: object) -> None:
        if verb != self._verb:
            super().after(verb, path, *details)


class FailingDisk(TappedDisk):
    """Falla con `code` en el verbo número `nth`; con `dead`, también en todos los siguientes."""

    def __init__(self, nth: int, code: int, *, dead: bool = False) -> None:
        self._nth = nth
        self._code = code
        self._dead = dead
        self.verbs: list[str] = []

    @property
    def failed(self) -> bool:
        return len(self.verbs) >= self._nth

    def before(self, verb: str) -> None:
        self.verbs.append(verb)
        if len(self.verbs) == self._nth or (self._dead and self.failed):
            raise OSError(self._code, errno.errorcode[self._code])


class KillingDisk(TappedDisk):
    """Mata a su propio proceso con SIGKILL justo antes del verbo número `nth`."""

    def __init__(self, nth: int) -> None:
        self._left = nth

    def before(self, verb: str) -> None:
        self._left -= 1
        if self._left == 0:
            os.kill(os.getpid(), signal.SIGKILL)
