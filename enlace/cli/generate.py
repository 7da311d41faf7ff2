"""`enlace generate`: escribe texto con un modelo terminado."""

import re
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from enlace.cli.command import Command
from enlace.cli.completion import TRAINED
from enlace.errors import CorruptDataError, EnlaceError, NotFoundError

if TYPE_CHECKING:
    from enlace.config.schema import Sample
    from enlace.tokenizer import ByteTokenizer

# Lo que generation_config.json no lleva: por defecto, el comienzo de un documento y siempre el mismo texto.
UNSAID = {"prompt": "", "seed": 0, "temperature": 0.0, "top_k": 0, "top_p": 1.0}
# Salvo tabuladores y saltos, lo que una terminal obedece en vez de escribir.
_CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")


@click.command(cls=Command)
@click.argument("model", type=TRAINED, metavar="MODELO", help="Carpeta de un modelo, o una corrida ya entrenada.")
@click.option("--prompt", metavar="TEXTO", help="Cómo empieza el texto.")
@click.option("--max-new-tokens", type=click.IntRange(min=1), metavar="N", help="Cuántos tokens como mucho.")
@click.option("--temperature", type=click.FloatRange(min=0), metavar="X", help="0 elige siempre lo más probable.")
@click.option("--top-k", type=click.IntRange(min=0), metavar="N", help="Elige entre los N mejores; 0, entre todos.")
@click.option(
    "--top-p", type=click.FloatRange(0, 1, min_open=True), metavar="X", help="Qué parte de la probabilidad se conserva."
)
@click.option(
    "--seed", type=click.IntRange(0, 2**63 - 1), metavar="N", help="Con la misma, el mismo texto; si no se dice, 0."
)
def generate(model: str, **options: Any) -> None:
    """Escribe texto con un modelo.

    Lo que no digas sale de su generation_config.json.
    """
    from enlace.infer.generate import generate_text
    from enlace.model.directory import load_model

    folder = find_model(model)
    transformer, _ = load_model(folder)
    tokenizer = open_tokenizer(folder, transformer.config.vocab_size)
    sample = read_sample(folder, options)
    write(sample.prompt)
    for piece in generate_text(transformer, tokenizer, sample):
        write(piece)
    click.echo()


def write(text: str) -> None:
    """Lo escribe tal cual; en una terminal, sin los controles con los que un modelo ajeno podría mandar en ella."""
    click.echo(_CONTROLS.sub("\ufffd", text) if sys.stdout.isatty() else text, nl=False)


def find_model(name: str) -> Path:
    """La carpeta del modelo: la que se da, o la `model/` de una corrida, dada por su carpeta o por su nombre."""
    for folder in (Path(name), Path(name, "model"), Path("runs", name, "model")):
        if (folder / "config.json").is_file():
            return folder
    begun = Path("runs", name)
    if (begun / "checkpoints").is_dir():
        raise NotFoundError(
            f"la corrida «{name}» no ha terminado",
            where=str(begun),
            why="el modelo se escribe al final del entrenamiento",
            fix="termínala repitiendo su orden con --resume auto",
        )
    raise NotFoundError(
        f"«{name}» no es un modelo ni una corrida terminada",
        where=str(begun),
        why="no tiene config.json, ni dentro una carpeta model/",
        fix="da la carpeta de un modelo, o entrena una desde la raíz del repositorio: enlace train CORRIDA",
    )


def open_tokenizer(folder: Path, vocab_size: int) -> "ByteTokenizer":
    """El tokenizer del modelo. EnlaceError si no es el de bytes, el único que hay hoy, o si el modelo no tiene sus ids.

    vocab_size: el del modelo.
    """
    from enlace.tokenizer import ByteTokenizer

    tokenizer = ByteTokenizer()
    definition = folder / "tokenizer.json"
    if not definition.is_file() or definition.read_bytes() != tokenizer.files()[definition.name]:
        raise EnlaceError(
            "este modelo no usa el tokenizer de bytes",
            where=str(definition),
            why="esta versión solo sabe generar con el de bytes",
            fix="usa un modelo entrenado con data.kind=bytes",
        )
    if vocab_size < tokenizer.vocab_size:
        raise CorruptDataError(
            "el tokenizer no es el de este modelo",
            where=str(definition),
            why=f"tiene {tokenizer.vocab_size} ids y el modelo, {vocab_size}",
            fix="recupera la carpeta del modelo de una copia",
        )
    return tokenizer


def read_sample(folder: Path, options: Mapping[str, Any]) -> "Sample":
    """Cómo se genera: lo dicho en la orden y, lo demás, como dice el modelo."""
    from pydantic import ValidationError

    from enlace.config.schema import Sample
    from enlace.durable import read_json

    where = folder / "generation_config.json"
    saved: Any = read_json(where)
    said = {name: value for name, value in options.items() if value is not None}
    try:
        return Sample(**{name: (UNSAID | saved | said)[name] for name in Sample.model_fields})
    except (KeyError, TypeError, ValidationError) as error:
        raise CorruptDataError(
            "generation_config.json no dice cómo generar",
            where=str(where),
            why="falta una clave o no vale lo que pone",
            fix="recupéralo de una copia del modelo",
        ) from error
