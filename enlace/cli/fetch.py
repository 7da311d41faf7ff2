"""Bajar los textos de una fuente: con curl, que sabe seguir donde se quedó."""

import hashlib
import shutil
import subprocess
from pathlib import Path

from enlace.config import schema
from enlace.durable import DISK
from enlace.errors import CorruptDataError, EnlaceError, InstallationError, NotFoundError, say

# De `man curl`, EXIT CODES: el servidor no deja seguir a medias, y no queda nada por bajar.
_CANNOT_RESUME = (33, 36)


# «hub:QUIÉN/CONJUNTO/RUTA» es un fichero de un conjunto de datos de Hugging Face.
_HUB = "hub:"


def address(url: str) -> str:
    """La dirección de verdad de una fuente."""
    if not url.startswith(_HUB):
        return url
    owner, _, rest = url.removeprefix(_HUB).partition("/")
    name, _, path = rest.partition("/")
    return f"https://huggingface.co/datasets/{owner}/{name}/resolve/main/{path}"


def fetch_sources(config: schema.Corpus) -> list[str]:
    """Baja las fuentes con `url` que falten y devuelve sus nombres.

    A medias queda en `….part`, y la siguiente vez sigue; con su nombre solo está entero y comprobado.
    """
    sources = [source for source in config.sources if source.url is not None]
    if not sources:
        raise NotFoundError("ninguna fuente de este corpus se baja", fix="pon «url» en la que quieras bajar")
    if shutil.which("curl") is None:
        raise InstallationError("hace falta curl para bajar textos", fix="sudo apt install curl")
    return [source.name for source in sources if _fetch(source)]


def _fetch(source: schema.TextSource) -> bool:
    target = Path(source.path)
    if target.exists():
        say(f"▸ {source.name}: ya está en {target}")
        return False
    partial = target.with_name(f"{target.name}.part")
    partial.parent.mkdir(parents=True, exist_ok=True)
    licence = source.license or "la de cada texto"
    say(f"▸ {source.name}: baja {address(source.url or '')} (licencia: {licence})")
    code = _curl(source, partial, "--continue-at", "-")
    if code in _CANNOT_RESUME:
        code = _curl(source, partial)
    if code:
        raise EnlaceError(
            f"no se ha podido bajar {source.name}",
            where=str(source.url),
            why=f"curl ha acabado con {code}; lo bajado queda en {partial}",
            fix="comprueba la red y repite: sigue donde estaba",
        )
    _check(source, partial)
    DISK.rename(partial, target)
    DISK.fsync_dir(target.parent)
    return True


def _curl(source: schema.TextSource, partial: Path, *more: str) -> int:
    # Solo http y https, tampoco al redirigir: una dirección file:// leería esta máquina.
    protocols = ["--proto", "=http,https", "--proto-redir", "=http,https"]
    options = ["--fail", "--location", "--silent", "--show-error", "--retry", "3", *protocols, *more]
    command = ["curl", *options, "--output", str(partial), "--", address(source.url or "")]
    return subprocess.run(command, check=False).returncode  # noqa: S603  argumentos sueltos, sin intérprete


def _check(source: schema.TextSource, partial: Path) -> None:
    if source.sha256 is None:
        return
    with partial.open("rb") as stream:
        found = hashlib.file_digest(stream, "sha256").hexdigest()
    if found != source.sha256:
        DISK.unlink(partial)
        raise CorruptDataError(
            f"lo bajado de {source.name} no es lo que se esperaba",
            where=str(source.url),
            why=f"su huella es {found} y se esperaba {source.sha256}",
            fix="si ha cambiado a propósito, corrige «sha256»; si no, no te fíes",
        )
