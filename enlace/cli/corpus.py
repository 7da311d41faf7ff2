"""`enlace corpus`: de textos en español a documentos con los que entrenar."""

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from enlace.cli.command import Group
from enlace.cli.completion import CORPUS
from enlace.errors import CorruptDataError, NotFoundError

if TYPE_CHECKING:
    from enlace.corpus.build import Executor

_CORPUS = click.argument("corpus", type=CORPUS, metavar="CORPUS", help="Nombre o fichero de configs/corpus/.")
_CHANGES = click.argument("changes", nargs=-1, metavar="[clave=valor]…", help="Cambios, p. ej. output=data/otro.")


@click.group(cls=Group)
def corpus() -> None:
    """Prepara los textos con los que se entrena."""


@corpus.command()
@_CORPUS
@_CHANGES
def fetch(corpus: str, changes: tuple[str, ...]) -> None:
    """Baja las fuentes de un corpus que tienen dirección.

    Si se corta, repetirla sigue donde estaba.
    """
    from enlace.cli.fetch import fetch_sources
    from enlace.config import load_corpus

    fetched = fetch_sources(load_corpus(corpus, list(changes)))
    click.echo(f"bajadas: {', '.join(fetched)}" if fetched else "no había nada que bajar")


@corpus.command()
@_CORPUS
@_CHANGES
@click.option("--workers", type=click.IntRange(1), metavar="N", help="Procesos; si no se dice, uno por núcleo.")
@click.option("--strict", is_flag=True, help="Se para si algún fichero no se puede leer.")
@click.option("--licenses", metavar="A,B", help="Solo textos con estas licencias.")
@click.option("--executor", type=click.Choice(["local", "ray"]), help="Limpia con datatrove (extra cluster).")
def build(
    corpus: str,
    changes: tuple[str, ...],
    workers: int | None,
    strict: bool,
    licenses: str | None,
    executor: "Executor | None",
) -> None:
    """Lee, limpia, compara y publica los textos de un corpus.

    Se puede cortar y repetir: sigue donde estaba. Sale con 7 si algún fichero no se ha podido leer.
    """
    from enlace.config import load_corpus
    from enlace.corpus.build import build as build_corpus
    from enlace.corpus.report import render_stats

    chosen = [f"licenses={json.dumps(licenses.split(','), ensure_ascii=False)}"] if licenses else []
    config = load_corpus(corpus, [*changes, *chosen])
    stats: dict[str, Any] = build_corpus(
        config, workers=workers or os.cpu_count() or 1, strict=strict, executor=executor
    )
    click.echo(render_stats(stats))
    click.echo(f"documentos en {Path(config.output) / 'documents'}; informe en {Path(config.output) / 'informe.md'}")
    if stats["unread"]:
        raise CorruptDataError(
            "el corpus está hecho, pero hay ficheros que no se han podido leer",
            where=config.output,
            why="\n".join(stats["unread"][:20]),
            fix="arréglalos y repite la orden, o déjalos fuera",
        )


@corpus.command()
@_CORPUS
@_CHANGES
@click.option("--rejected", metavar="REGLA", help="Enseña ejemplos de lo que tira esa regla.")
@click.option("--json", "as_json", is_flag=True, help="Para programas: JSON.")
def stats(corpus: str, changes: tuple[str, ...], rejected: str | None, as_json: bool) -> None:
    """Cuenta lo que hay en un corpus ya hecho y lo que cayó."""
    from enlace.config import load_corpus
    from enlace.corpus.report import dropped, render_rejected, render_stats
    from enlace.durable import read_json, verify

    documents = Path(load_corpus(corpus, list(changes)).output) / "documents"
    if not documents.exists():
        raise NotFoundError("ese corpus no está hecho", where=str(documents), fix=f"enlace corpus build {corpus}")
    verify(documents, "documents")
    found: Any = read_json(documents / "stats.json")
    if rejected is not None:
        rules = sorted({rule for source in found["sources"].values() for rule, _ in dropped(source["counts"])})
        if rejected not in rules:
            raise NotFoundError(
                f"ninguna regla «{rejected}» ha tirado nada", fix=f"hay: {', '.join(rules) or 'ninguna'}"
            )
        click.echo(render_rejected(found, rejected))
    else:
        click.echo(json.dumps(found, ensure_ascii=False, indent=2) if as_json else render_stats(found))


@corpus.command()
@_CORPUS
@_CHANGES
def export(corpus: str, changes: tuple[str, ...]) -> None:
    """Saca un corpus ya hecho como .jsonl.zst.

    Es lo que lee `enlace train` byte a byte, y casi cualquier otro programa.
    """
    from enlace.config import load_corpus
    from enlace.corpus.merge import export_jsonl

    output = Path(load_corpus(corpus, list(changes)).output)
    for path in export_jsonl(output / "documents", output / "jsonl"):
        click.echo(f"✓ {path}")
