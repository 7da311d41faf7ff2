"""La forma de módulo: `python -m enlace.agent.tools.search "…"`; `enlace search` hace lo mismo."""

import argparse
import sys
from typing import get_args

from enlace.agent.tools.search.command import search
from enlace.config.schema import TimeRange
from enlace.errors import guard
from enlace.errors.spanish import speak_spanish


def main(arguments: list[str] | None = None) -> int:
    """Busca lo que digan los argumentos y devuelve el código de salida."""
    speak_spanish()
    parser = argparse.ArgumentParser(prog="python -m enlace.agent.tools.search", description="Busca en internet.")
    parser.add_argument("text", metavar="TEXTO", nargs="+", help="lo que se busca")
    parser.add_argument("--config", default="casa", metavar="CASA", help="nombre o fichero de configs/agent/")
    parser.add_argument("--set", action="append", default=[], metavar="clave=valor", help="cambia la configuración")
    parser.add_argument("--time", choices=get_args(TimeRange), help="solo lo del último día, semana, mes o año")
    parser.add_argument("--json", action="store_true", help="para programas")
    parser.add_argument("--verbose", action="store_true", help="enseña todos los intentos")
    parser.add_argument("--debug", action="store_true", help="enseña la traza de los errores")
    options = parser.parse_args(arguments)
    return guard(
        lambda: search(
            " ".join(options.text),
            house=options.config,
            changes=options.set,
            time_range=options.time,
            as_json=options.json,
            verbose=options.verbose,
        ),
        debug=options.debug,
    )


if __name__ == "__main__":
    sys.exit(main())
