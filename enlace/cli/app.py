"""El programa `enlace`: el grupo de órdenes y la traducción de los errores de click a los nuestros."""

import re
import sys
from collections.abc import Sequence
from io import TextIOWrapper

import click

from enlace import __version__
from enlace.cli.agent import agent
from enlace.cli.command import Group
from enlace.cli.completion import completion
from enlace.cli.config import config
from enlace.cli.corpus import corpus
from enlace.cli.doctor import doctor
from enlace.cli.generate import generate
from enlace.cli.search import search
from enlace.cli.train import train
from enlace.errors import Cancelled, UsageError, guard
from enlace.errors.spanish import speak_spanish

DEBUG = "--debug"
SETTINGS = {"max_content_width": 100, "help_option_names": ["-h", "--help"]}
# click escribe 'así' los nombres; en español van «así».
QUOTED = re.compile(r"'([^']*)'")


@click.group(cls=Group, name="enlace", context_settings=SETTINGS)
@click.option(DEBUG, is_flag=True, expose_value=False, help="Si algo falla, muestra la traza. Vale en cualquier sitio.")
# click traduce estos dos textos al importarse, antes de saber que hablamos español.
@click.version_option(__version__, message="enlace, versión %(version)s", help="Muestra la versión y termina.")
def app() -> None:
    """ENLACE: un modelo de lenguaje propio para la familia, del texto crudo al asistente.

    CORRIDA es el nombre de una (smoke-cpu) o la ruta de su fichero (configs/runs/smoke-cpu.yaml).

    Códigos de salida: 0 hecho · 1 falló · 2 orden mal escrita · 3 instalación · 4 configuración · 5 no existe
    · 6 ocupado · 7 datos dañados · 8 sin espacio o memoria · 9 rechazado por seguridad · 130 cancelado.
    """


for _command in (doctor, config, corpus, train, generate, search, agent, completion):
    app.add_command(_command)


def main(arguments: Sequence[str] | None = None) -> int:
    """Ejecuta la orden y devuelve el código de salida; nunca deja escapar una traza sin `--debug`."""
    speak_spanish()
    _never_fail_to_print()
    given = sys.argv[1:] if arguments is None else list(arguments)
    return guard(lambda: _run([argument for argument in given if argument != DEBUG]), debug=DEBUG in given)


def _never_fail_to_print() -> None:
    """En una terminal sin UTF-8 las tildes salen como «?» en vez de romper la orden; `doctor` avisa de ello."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="replace")


def _run(arguments: list[str]) -> None:
    try:
        app.main(arguments, prog_name="enlace", standalone_mode=False)
    except click.exceptions.NoArgsIsHelpError as error:
        click.echo(error.format_message())
    except click.Abort:
        raise Cancelled("cancelado") from None
    except click.ClickException as error:
        raise _translate(error) from error


def _translate(error: click.ClickException) -> UsageError:
    """Un error de click con nuestras cuatro líneas: qué está mal, en qué orden, cómo se usa y dónde hay ayuda."""
    context = error.ctx if isinstance(error, click.UsageError) else None
    path = context.command_path if context else "enlace"
    usage = context.get_usage() if context else ""
    return UsageError(
        QUOTED.sub(r"«\1»", error.format_message()), where=path, why=usage, fix=f"mira la ayuda con: {path} --help"
    )
