"""El corpus de la primera corrida: unos megas de prosa en español de un solo origen, publicados con su procedencia.

    python -m enlace.corpus.smoke carpeta|gutenberg|sword|ayuda ENTRADA SALIDA [--rehacer]
    python -m enlace.corpus.smoke comprobar SALIDA

Lo llama scripts/prepare_smoke_data.sh, que es quien descarga.
"""

import argparse
import hashlib
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import cast

from enlace.corpus.document import Document, to_jsonl_zst
from enlace.corpus.folder import read_folder, text_files
from enlace.corpus.gutenberg import read_books
from enlace.corpus.help_pages import read_pages
from enlace.corpus.sword import read_module
from enlace.durable import Json, Manifest, publish, sweep, verify
from enlace.durable.manifest import MANIFEST
from enlace.errors import EnlaceError, RefusedError, guard
from enlace.errors.numerals import decimal, thousands
from enlace.errors.spanish import speak_spanish

KIND = "documents"


@dataclass(frozen=True)
class Origin:
    """Un origen: cómo se leen sus documentos y qué ficheros originales hay que poder reconocer después."""

    label: str
    read: Callable[[Path], list[Document]]
    originals: Callable[[Path], list[Path]]


def _debian_packages(folder: Path) -> list[Path]:
    return sorted(folder.glob("*.deb"))


def _read_sword(folder: Path) -> list[Document]:
    return read_module(folder / "usr/share/sword")


def _read_help(folder: Path) -> list[Document]:
    return read_pages(folder / "usr/share/libreoffice/help/es", "Ayuda de LibreOffice", "MPL-2.0")


ORIGINS: Mapping[str, Origin] = {
    "carpeta": Origin("carpeta local", read_folder, text_files),
    "gutenberg": Origin("Project Gutenberg", read_books, lambda folder: sorted(folder.glob("*.txt"))),
    "sword": Origin("paquete de Debian sword-text-sparv", _read_sword, _debian_packages),
    "ayuda": Origin("paquete de Debian libreoffice-help-es", _read_help, _debian_packages),
}


def build(origin: Origin, folder: Path, target: Path, *, replace: bool) -> Manifest:
    """Lee los documentos de `folder` y los publica en `target`; con `replace` sustituye lo que hubiera.

    Lo anterior no se toca hasta que lo nuevo está entero en el disco. EnlaceError si no hay dos documentos: sin ellos
    no se puede apartar ninguno para validar.
    """
    documents = origin.read(folder)
    if len(documents) < 2:
        raise EnlaceError(
            "hay muy poco texto",
            where=str(folder),
            why="hacen falta al menos dos documentos: uno se aparta para validar",
            fix="añade más textos; los ficheros largos se parten solos",
        )
    sweep(target.parent)
    if replace:
        _require_published(target)
    files = {"documents.jsonl.zst": to_jsonl_zst(documents)}
    return publish(target, files, kind=KIND, info=_provenance(origin, documents, folder), overwrite=replace)


def _require_published(target: Path) -> None:
    if target.exists() and not (target / MANIFEST).exists():
        raise RefusedError(
            "no se borra una carpeta que no ha escrito ENLACE",
            where=str(target),
            why=f"no tiene {MANIFEST}: podrían ser textos tuyos",
            fix="llévala a otro sitio y repite la orden",
        )


def _provenance(origin: Origin, documents: list[Document], folder: Path) -> dict[str, Json]:
    return {
        "origin": origin.label,
        "sources": sorted({document.source for document in documents}),
        "licenses": sorted({document.license for document in documents}),
        "documents": len(documents),
        "text_bytes": sum(len(document.text.encode("utf-8")) for document in documents),
        "originals": [_original(file, folder) for file in origin.originals(folder)],
    }


def _original(file: Path, folder: Path) -> dict[str, Json]:
    with file.open("rb") as stream:
        digest = hashlib.file_digest(stream, "sha256").hexdigest()
    return {"name": file.relative_to(folder).as_posix(), "bytes": file.stat().st_size, "sha256": digest}


def describe(manifest: Manifest) -> str:
    """Qué hay en un corpus publicado, para una persona."""
    info = cast(Mapping[str, int], manifest.info)
    licences = ", ".join(cast(list[str], manifest.info["licenses"]))
    text = f"{thousands(info['documents'])} documentos, {decimal(info['text_bytes'] / 1e6, 2)} MB de texto"
    return f"{text}; origen: {manifest.info['origin']}; licencia: {licences}"


def _arguments() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m enlace.corpus.smoke", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    for name, origin in ORIGINS.items():
        command = commands.add_parser(name, help=f"publica los documentos de: {origin.label}")
        command.add_argument("folder", type=Path, metavar="ENTRADA")
        command.add_argument("target", type=Path, metavar="SALIDA")
        command.add_argument("--rehacer", action="store_true", help="sustituye lo que haya en SALIDA")
    check = commands.add_parser("comprobar", help="comprueba cada byte de un corpus ya publicado")
    check.add_argument("target", type=Path, metavar="SALIDA")
    return parser


def _run(arguments: argparse.Namespace) -> None:
    if arguments.command == "comprobar":
        manifest = verify(arguments.target, KIND)
    else:
        origin = ORIGINS[arguments.command]
        manifest = build(origin, arguments.folder, arguments.target, replace=arguments.rehacer)
    print(f"{arguments.target}: {describe(manifest)}")


def main(arguments: list[str] | None = None) -> int:
    """Lo que usa `scripts/prepare_smoke_data.sh`; devuelve el código de salida."""
    speak_spanish()
    return guard(partial(_run, _arguments().parse_args(arguments)))


if __name__ == "__main__":
    sys.exit(main())
