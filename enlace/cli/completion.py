"""`enlace completion`: el autocompletado de la terminal, y de dónde salen los nombres que propone."""

from pathlib import Path

import click
from click.shell_completion import CompletionItem, get_completion_class

from enlace.cli.command import Command
from enlace.errors import InstallationError


class Name(click.ParamType[str]):
    """Un nombre o una ruta; la terminal propone las partes número `part` de las rutas que casan con el patrón."""

    name = "name"

    def __init__(self, pattern: str, part: int) -> None:
        self.pattern = pattern
        self.part = part

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        """Los nombres que empiezan así; si no hay ninguno, ficheros."""
        names = sorted(Path(path.parts[self.part]).stem for path in Path().glob(self.pattern))
        matching = [CompletionItem(name) for name in names if name.startswith(incomplete)]
        return matching or [CompletionItem(incomplete, type="file")]


RUN = Name("configs/runs/*.yaml", 2)
TRAINED = Name("runs/*/model", 1)
HOUSE = Name("configs/agent/*.yaml", 2)
CORPUS = Name("configs/corpus/*.yaml", 2)


@click.command(cls=Command)
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]), metavar="{bash|zsh|fish}", help="Tu intérprete.")
@click.pass_context
def completion(ctx: click.Context, shell: str) -> None:
    """Escribe el autocompletado para tu terminal.

    Para esta terminal, con el entorno activo (source .venv/bin/activate):  eval "$(enlace completion bash)"
    """
    script = get_completion_class(shell)
    if script is None:
        raise InstallationError(f"esta versión de click no sabe completar en {shell}", fix="scripts/setup.sh")
    click.echo(script(ctx.find_root().command, {}, "enlace", "_ENLACE_COMPLETE").source())
