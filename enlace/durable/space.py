"""El espacio libre y los fallos del disco, contados en claro antes y después de escribir."""

import errno
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from enlace.errors import CorruptDataError, EnlaceError, NotFoundError, ResourceError
from enlace.errors.numerals import decimal

# EFBIG es el límite de tamaño de un fichero (ulimit -f, FAT32): para quien escribe, también es falta de sitio.
_NO_SPACE = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
_NO_PERMISSION = {errno.EACCES, errno.EPERM}
_CAUSES = {
    errno.ENOSPC: "el disco está lleno",
    errno.EDQUOT: "se ha agotado la cuota de disco",
    errno.EFBIG: "el fichero supera el tamaño que permite el sistema",
    errno.EIO: "error de entrada o salida del disco",
    errno.EACCES: "el sistema lo deniega",
    errno.EPERM: "el sistema lo deniega",
    errno.EROFS: "el disco está montado solo para leer",
    errno.ENOENT: "no hay nada con ese nombre",
    errno.ENOTDIR: "una parte de la ruta no es una carpeta",
    errno.EISDIR: "es una carpeta, no un fichero",
    errno.ENAMETOOLONG: "el nombre es demasiado largo",
    errno.ELOOP: "los enlaces van en círculo",
    errno.ENOTEMPTY: "ya hay algo con ese nombre",
    errno.EEXIST: "ya hay algo con ese nombre",
}


def require_space(folder: Path, needed: int) -> None:
    """ResourceError, con lo que falta, si en el disco de `folder` (exista ya o no) no caben `needed` bytes."""
    free = _free_bytes(folder)
    if free < needed:
        raise ResourceError(
            f"no hay espacio en disco: hacen falta {_size(needed)} y quedan {_size(free)} libres",
            where=str(folder),
            why=f"faltan {_size(needed - free)}",
            fix="libera espacio o elige una carpeta en otro disco",
        )


@contextmanager
def writing(path: Path) -> Iterator[None]:
    """Traduce los OSError de una escritura a errores que una persona entiende."""
    try:
        yield
    except OSError as error:
        raise _write_error(path, error) from error


@contextmanager
def reading(path: Path) -> Iterator[None]:
    """Traduce los OSError de una lectura: lo que el disco no devuelve está tan perdido como lo corrupto."""
    try:
        yield
    except FileNotFoundError as error:
        raise NotFoundError("no existe", where=str(path), why=_cause(error)) from error
    except PermissionError as error:
        raise _no_permission("leer", path, error) from error
    except OSError as error:
        raise CorruptDataError(
            "no se puede leer", where=str(path), why=_cause(error), fix="recupéralo de una copia y revisa el disco"
        ) from error


def _write_error(path: Path, error: OSError) -> EnlaceError:
    if error.errno in _NO_SPACE:
        return ResourceError(
            f"no hay espacio para escribir: quedan {_size(_free_bytes(path.parent))} libres",
            where=str(path),
            why=_cause(error),
            fix="libera espacio o elige otra carpeta; lo que ya estaba guardado sigue intacto",
        )
    if error.errno in _NO_PERMISSION:
        return _no_permission("escribir", path, error)
    if error.errno == errno.EROFS:
        return EnlaceError(
            "el disco no deja escribir",
            where=str(path),
            why=_cause(error),
            fix="móntalo para escribir; si antes dejaba, el sistema lo ha protegido tras un fallo: revísalo (dmesg)",
        )
    if error.errno == errno.EIO:
        # Tras un EIO el núcleo puede dar por limpias páginas que no llegaron: reintentar diría «hecho» sin estarlo.
        return EnlaceError(
            "el disco ha fallado al guardar y lo último no está a salvo",
            where=str(path),
            why=_cause(error),
            fix="no sigas escribiendo en ese disco: revísalo (dmesg, smartctl) y copia lo que ya estaba guardado",
        )
    return EnlaceError("no se ha podido escribir", where=str(path), why=_cause(error), fix="comprueba la ruta")


def _no_permission(verb: str, path: Path, error: OSError) -> EnlaceError:
    return EnlaceError(
        f"no hay permiso para {verb}", where=str(path), why=_cause(error), fix="revisa el dueño y los permisos"
    )


def _cause(error: OSError) -> str:
    number = error.errno or 0
    cause = _CAUSES.get(number, error.strerror or str(error))
    return f"{cause} ({errno.errorcode.get(number, type(error).__name__)})"


def _free_bytes(folder: Path) -> int:
    place = folder.absolute()
    existing = next(folder for folder in (place, *place.parents) if folder.is_dir())
    return shutil.disk_usage(existing).free


def _size(count: int) -> str:
    """Bytes en unidades decimales y con coma: 2600000000 → «2,6 GB»."""
    value, unit = float(count), "B"
    for unit in ("B", "kB", "MB", "GB", "TB"):
        if value < 1000 or unit == "TB":
            break
        value /= 1000
    return f"{count} B" if unit == "B" else f"{decimal(value, 1)} {unit}"
