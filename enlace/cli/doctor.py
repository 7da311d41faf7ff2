"""`enlace doctor`: comprueba la máquina antes de empezar."""

import json
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path

import click

from enlace.cli.command import Command
from enlace.errors import EnlaceError, InstallationError
from enlace.errors.numerals import gib
from enlace.train.check import Check

GIB = 2**30
SUPPORTED_PYTHON = ((3, 11), (3, 14))
COMFORTABLE_DISK = 5 * GIB
COMFORTABLE_RAM = 4 * GIB
SLOW_FSYNC_SECONDS = 1.0


@click.command(cls=Command)
@click.option("--json", "as_json", is_flag=True, help="Para programas: JSON.")
def doctor(as_json: bool) -> None:
    """Comprueba si la máquina está lista y dice qué le falta."""
    checks = [*_system(Path.cwd()), *_machine()]
    if as_json:
        click.echo(json.dumps([asdict(check) for check in checks], ensure_ascii=False, indent=2))
    else:
        click.echo("\n".join(_line(check) for check in checks))
    failed = [check.name for check in checks if check.fatal and not check.ok]
    if failed:
        raise InstallationError(
            f"esta máquina no está lista: {', '.join(failed)}",
            where="enlace doctor",
            fix="sigue las pistas de las líneas marcadas con ✗",
        )


def _line(check: Check) -> str:
    hint = "" if check.ok or not check.hint else f"\n  pista: {check.hint}"
    return f"{'✓' if check.ok else '✗'} {check.name}: {check.detail}{hint}"


def _system(folder: Path) -> Iterator[Check]:
    yield _python()
    yield _disk(folder)
    yield _fsync(folder)
    yield _ram()
    yield _utf8()
    yield _tmux()


def _machine() -> list[Check]:
    """Lo que dice `backends` de torch y la placa; que torch no se pueda ni importar también es una respuesta."""
    try:
        from enlace.train.backends import inspect_machine
    except (ImportError, OSError) as error:
        return [Check("torch", False, f"no se puede importar: {error}", "scripts/setup.sh", fatal=True)]
    return inspect_machine()


def _python() -> Check:
    oldest, newest = SUPPORTED_PYTHON
    version = ".".join(str(part) for part in sys.version_info[:3])
    ok = oldest <= sys.version_info[:2] <= newest
    return Check("Python", ok, version, "instala Python 3.11–3.14 y repite scripts/setup.sh", fatal=True)


def _disk(folder: Path) -> Check:
    free = shutil.disk_usage(folder).free
    hint = f"libera espacio: conviene tener {COMFORTABLE_DISK // GIB} GiB"
    return Check("disco", free >= COMFORTABLE_DISK, f"{gib(free)} libres", hint)


def _fsync(folder: Path) -> Check:
    """Escribe por el mismo camino que los puntos de control: si falla aquí, fallaría entrenando."""
    from enlace.durable import write_file

    started = time.perf_counter()
    try:
        with tempfile.TemporaryDirectory(dir=folder, prefix=".doctor-") as scratch:
            write_file(Path(scratch) / "fsync", b"ENLACE\n")
    except (OSError, EnlaceError) as error:
        return Check("escritura segura", False, str(error), "comprueba permisos y espacio de esta carpeta", fatal=True)
    seconds = time.perf_counter() - started
    hint = "el disco tarda en confirmar: usa uno local, no de red"
    return Check("escritura segura", seconds < SLOW_FSYNC_SECONDS, f"fsync en {seconds * 1000:.0f} ms", hint)


def _ram() -> Check:
    import psutil

    memory = psutil.virtual_memory()
    detail = f"{gib(memory.available)} libres de {gib(memory.total)}"
    hint = f"cierra programas: conviene tener {COMFORTABLE_RAM // GIB} GiB libres"
    return Check("memoria", memory.available >= COMFORTABLE_RAM, detail, hint)


def _utf8() -> Check:
    encoding = sys.stdout.encoding or "desconocida"
    return Check("UTF-8", encoding.lower() in ("utf-8", "utf8"), encoding, "export LANG=C.UTF-8")


def _tmux() -> Check:
    found = shutil.which("tmux")
    hint = "con tmux el entrenamiento sobrevive a un corte de la conexión: sudo apt install tmux"
    return Check("tmux", found is not None, found or "no está", hint)
