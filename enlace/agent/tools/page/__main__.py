"""`python -m enlace.agent.tools.page DIRECCIÓN`: lee una página y escribe su texto."""

import argparse
import json
import sys
from dataclasses import asdict

from enlace.agent.tools.page.read import PageText, read_page
from enlace.agent.web import WebClient
from enlace.config import load_agent
from enlace.errors import guard, warn
from enlace.errors.spanish import speak_spanish


def main(arguments: list[str] | None = None) -> int:
    """Lee la página que digan los argumentos y devuelve el código de salida."""
    speak_spanish()
    parser = argparse.ArgumentParser(prog="python -m enlace.agent.tools.page", description="Lee una página o un PDF.")
    parser.add_argument("url", metavar="DIRECCIÓN", help="http://… o https://…")
    parser.add_argument("--config", default="casa", metavar="CASA", help="nombre o fichero de configs/agent/")
    parser.add_argument("--set", action="append", default=[], metavar="clave=valor", help="cambia la configuración")
    parser.add_argument("--json", action="store_true", help="para programas")
    parser.add_argument("--debug", action="store_true", help="enseña la traza de los errores")
    options = parser.parse_args(arguments)
    return guard(lambda: _read(options), debug=options.debug)


def _read(options: argparse.Namespace) -> None:
    agent = load_agent(options.config, options.set)
    page = read_page(options.url, WebClient(agent.web), agent.page)
    if options.json:
        flat = {**asdict(page), "title": page.title.text, "text": page.text.text}
        print(json.dumps(flat, ensure_ascii=False, indent=2))
    else:
        print(_shown(page))
        if page.cut:
            warn(f"el texto sigue: se ha cortado en {agent.page.max_characters} caracteres (page.max_characters)")


def _shown(page: PageText) -> str:
    about = " · ".join(filter(None, (page.url, page.date)))
    return "\n".join(filter(None, (page.title.text, about, "", page.text.text)))


if __name__ == "__main__":
    sys.exit(main())
