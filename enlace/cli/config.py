"""`enlace config`: ver, comprobar y describir la configuración."""

import json
from pathlib import Path

import click

from enlace.cli.command import Group
from enlace.cli.completion import RUN

CONFIGS = Path("configs")


@click.group(cls=Group)
def config() -> None:
    """Muestra, comprueba o describe la configuración."""


@config.command()
@click.argument("run", type=RUN, metavar="CORRIDA", help="Nombre o fichero.")
@click.argument("overrides", nargs=-1, metavar="[clave=valor]…", help="Cambios, p. ej. train.seed=7.")
@click.option("--origin", is_flag=True, help="Dice de qué fichero y línea sale cada valor.")
@click.option("--json", "as_json", is_flag=True, help="Para programas: JSON.")
def show(run: str, overrides: tuple[str, ...], origin: bool, as_json: bool) -> None:
    """Enseña la configuración completa de una corrida, ya compuesta."""
    from enlace.config import dump, explain, find_run, load_run

    loaded = load_run(find_run(run), overrides)
    if as_json:
        shown = loaded.run.model_dump(mode="json")
        if origin:
            shown = {"config": shown, "origins": {key: str(where) for key, where in loaded.origins.items()}}
        click.echo(json.dumps(shown, ensure_ascii=False, indent=2))
    else:
        click.echo(explain(loaded) if origin else dump(loaded.run).rstrip())


@config.command()
def check() -> None:
    """Comprueba todos los ficheros de configs/.

    No necesita ningún secreto.
    """
    from enlace.config import check_all

    checked = check_all(CONFIGS)
    for path in checked:
        click.echo(f"✓ {path}")
    click.echo(f"{len(checked)} ficheros, todos válidos")


@config.command()
@click.option("--write", is_flag=True, help="Los escribe en configs/schema/, donde los busca el editor.")
def schema(write: bool) -> None:
    """Saca los JSON Schema de los YAML.

    Con ellos el editor completa y corrige.
    """
    from enlace.config import json_schemas
    from enlace.durable import write_file

    for name, content in json_schemas().items():
        text = json.dumps(content, ensure_ascii=False, indent=2) + "\n"
        if not write:
            click.echo(text, nl=False)
            continue
        path = CONFIGS / "schema" / f"{name}.json"
        path.parent.mkdir(exist_ok=True)
        write_file(path, text.encode())
        click.echo(f"✓ {path}")
