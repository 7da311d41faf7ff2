"""Lo que tarda en leerse una página de resultados.

    python bench/search_parse.py [--pages N]     páginas/s en un núcleo

La página la escribe este programa: treinta resultados con sus redirecciones, unos 30 kB. Se cuenta el tiempo de CPU,
así que lo que hagan otros casi no entra.
"""

import argparse
import sys
import time
from urllib.parse import quote

from enlace.agent.tools.search.duckduckgo import parse
from enlace.errors import guard

RESULT = """<div class="result results_links results_links_deep web-result"><div class="links_main">
<h2 class="result__title"><a rel="nofollow" class="result__a" href="{href}">Título número {n} de la página</a></h2>
<div class="result__extras"><a class="result__url" href="{href}">sitio{n}.example</a></div>
<a class="result__snippet" href="{href}">Un trozo con <b>palabras</b> buscadas, {n}: {text}</a></div></div>"""


def results_page() -> str:
    """La página."""
    blocks = []
    for n in range(30):
        href = f"//duckduckgo.com/l/?uddg={quote(f'https://sitio{n}.example/una/ruta?a={n}', safe='')}&amp;rut=abc"
        blocks.append(RESULT.format(n=n, href=href, text="texto de relleno " * 25))
    return f"<!DOCTYPE html><html><body><div id='links'>{''.join(blocks)}</div></body></html>"


def main() -> None:
    parser = argparse.ArgumentParser(prog="python bench/search_parse.py", description=__doc__)
    parser.add_argument("--pages", type=int, default=10_000)
    pages = parser.parse_args().pages
    text = results_page()
    start = time.process_time()
    for _ in range(pages):
        found = len(parse(200, {}, text).results)
    seconds = time.process_time() - start
    print(f"{pages / seconds:.0f} páginas/s de {len(text) / 1000:.0f} kB y {found} resultados, en un núcleo")


if __name__ == "__main__":
    sys.exit(guard(main))
