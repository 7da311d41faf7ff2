"""`enlace train`: entrena una corrida."""

import click

from enlace.cli.command import Command
from enlace.cli.completion import RUN


@click.command(cls=Command)
@click.argument("run", type=RUN, metavar="CORRIDA", help="Nombre o fichero.")
@click.argument("overrides", nargs=-1, metavar="[clave=valor]…", help="Cambios, p. ej. train.seed=7.")
@click.option("--resume", metavar="auto|RUTA", help="Sigue desde el último punto de control válido, o desde RUTA.")
@click.option("--estimate", is_flag=True, help="Solo dice cuánto costará: memoria, disco y tiempo.")
def train(run: str, overrides: tuple[str, ...], resume: str | None, estimate: bool) -> None:
    """Entrena una corrida, o la reanuda donde quedó.

    Con Ctrl-C termina el paso, guarda y dice cómo seguir.
    """
    from enlace.train.train import launch

    launch(run, list(overrides), resume=resume, estimate=estimate)
