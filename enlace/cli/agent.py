"""`enlace agent`: comprueba el agente y dice cómo está."""

import json
from typing import TYPE_CHECKING

import click

from enlace.cli.command import Group
from enlace.cli.completion import HOUSE
from enlace.errors import EnlaceError

if TYPE_CHECKING:
    from enlace.agent.tools.search.status import SearchStatus

_HOUSE = click.option(
    "--config", "house", type=HOUSE, default="casa", metavar="CASA", help="Nombre o fichero de configs/agent/."
)
_CHANGES = click.option(
    "--set", "changes", multiple=True, metavar="clave=valor", help="Cambios, p. ej. search.region=es-ES."
)
_JSON = click.option("--json", "as_json", is_flag=True, help="Para programas: JSON.")


@click.group(cls=Group)
def agent() -> None:
    """Comprueba el agente de la casa y dice cómo está."""


@agent.command()
@_HOUSE
@_CHANGES
@_JSON
@click.option("--live", is_flag=True, help="Hace una petición de verdad a cada buscador.")
def check(house: str, changes: tuple[str, ...], as_json: bool, live: bool) -> None:
    """Comprueba que se puede buscar.

    Dice qué ha quedado fuera y por qué. Con --live sale con 1 si no contesta ninguno.
    """
    from enlace.agent.tools.search.outcome import ANSWERED

    status = _status(house, changes, live=live)
    _show(status, as_json)
    if live and not any(attempt.outcome in ANSWERED for attempt in status.live):
        raise EnlaceError("no contesta ningún buscador", where="enlace agent check", fix="docs/guias/busqueda.md")


@agent.command()
@_HOUSE
@_CHANGES
@_JSON
def status(house: str, changes: tuple[str, ...], as_json: bool) -> None:
    """Dice cómo está cada buscador.

    En la cadena, descansando o fuera, y cuánto se ha usado.
    """
    _show(_status(house, changes, live=False), as_json)


def _status(house: str, changes: tuple[str, ...], *, live: bool) -> "SearchStatus":
    from enlace.agent.tools.search.command import open_chain
    from enlace.agent.tools.search.status import search_status

    with open_chain(house, changes) as chain:
        return search_status(chain, live=live)


def _show(status: "SearchStatus", as_json: bool) -> None:
    click.echo(json.dumps(status.to_json(), ensure_ascii=False, indent=2) if as_json else status.render())
