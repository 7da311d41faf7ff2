"""`enlace search`: busca en internet."""

from typing import TYPE_CHECKING

import click

from enlace.cli.command import Command
from enlace.cli.completion import HOUSE

if TYPE_CHECKING:
    from enlace.config.schema import TimeRange

# Escritos aquí para que la ayuda no tenga que cargar los esquemas; una prueba los compara.
TIME_RANGES = ("day", "week", "month", "year")


@click.command(cls=Command)
@click.argument("text", nargs=-1, required=True, metavar="TEXTO…", help="Lo que se busca.")
@click.option(
    "--config", "house", type=HOUSE, default="casa", metavar="CASA", help="Nombre o fichero de configs/agent/."
)
@click.option("--set", "changes", multiple=True, metavar="clave=valor", help="Cambios, p. ej. search.region=es-ES.")
@click.option("--time", "time_range", type=click.Choice(TIME_RANGES), help="Del último día, semana, mes o año.")
@click.option("--json", "as_json", is_flag=True, help="Para programas: JSON.")
@click.option("--verbose", is_flag=True, help="Enseña todos los intentos, también los que fallaron.")
def search(
    text: tuple[str, ...],
    house: str,
    changes: tuple[str, ...],
    time_range: "TimeRange | None",
    as_json: bool,
    verbose: bool,
) -> None:
    """Busca en internet con la cadena de buscadores de la casa.

    Sale con 1 si no contesta ninguno, y dice por qué cada uno.
    """
    from enlace.agent.tools.search.command import search as run

    run(" ".join(text), house=house, changes=changes, time_range=time_range, as_json=as_json, verbose=verbose)
