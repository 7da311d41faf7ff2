"""Páginas y respuestas de los buscadores, escritas a mano según lo que se sabe de ellas; lo que dicen es inventado."""

import json
from urllib.parse import quote

TITLES = [
    "Mate &amp; yerba: cómo se ceba",
    "El mate en Mendoza &#x27;de campo&#x27;",
    "¿Qué es el mate? — Preguntas",
    "Ñandúes y mates",
    "Historia de la infusión",
    "Bombillas de alpaca",
    "Calabazas: curado paso a paso",
    "Termo o pava",
    "Mate dulce, mate amargo",
    "Fiesta de la yerba",
]


def wrapped(url: str) -> str:
    """Un enlace con la redirección de DuckDuckGo."""
    return f"//duckduckgo.com/l/?uddg={quote(url, safe='')}&amp;rut=abc123"


def block(title: str, href: str, snippet: str | None, extra: str = "") -> str:
    """Un resultado de la página sin JavaScript."""
    text = "" if snippet is None else f'<a class="result__snippet" href="{href}">{snippet}</a>'
    return f"""<div class="result results_links results_links_deep web-result {extra}"><div class="links_main">
<h2 class="result__title"><a rel="nofollow" class="result__a" href="{href}">{title}</a></h2>
<a class="result__url" href="{href}">sitio</a>{text}</div></div>"""


def page(*blocks: str, before: str = "", query: str = "mate") -> str:
    """La página sin JavaScript."""
    return f"""<!DOCTYPE html><html><head><title>{query} at DuckDuckGo</title></head><body>
<form><input name="q" value="{query}"></form>{before}<div id="links" class="results">{"".join(blocks)}
<div class="nav-link"><form><input type="hidden" name="vqd" value="4-123"></form></div></div></body></html>"""


FOUND = [
    block(t, wrapped(f"https://www.sitio{n}.example/a?b={n}&c=ñ"), f"Trozo <b>mate</b> {n}")
    for n, t in enumerate(TITLES)
]
AD_CLASS = block("Compra mate", "https://tienda.example/", "Oferta", "result--ad")
AD_LINK = block("Yerba barata", "https://duckduckgo.com/y.js?ad_domain=tienda.example", "Oferta")
AD_INSIDE = block("Yerba gratis", wrapped("https://duckduckgo.com/y.js?ad_domain=tienda.example"), "Oferta")
NOTHING = '<div class="result results_links result--no-result"><div class="no-results">No  results.</div></div>'
ZERO_CLICK = '<div class="zci"><div id="zero_click_abstract">Your IP address is 192.0.2.1 in Aquí</div></div>'
CHALLENGE = """<!DOCTYPE html><html><head><title>DuckDuckGo</title></head><body>
<form id="challenge-form" action="//duckduckgo.com/anomaly.js?sv=html" method="POST">
<div class="anomaly-modal__title">Unfortunately, bots use DuckDuckGo too.</div></form></body></html>"""
LITE_ROW = """<tr><td>{n}.&nbsp;</td><td><a rel="nofollow" href="{href}" class='result-link'>{title}</a></td></tr>
<tr><td>&nbsp;</td><td class='result-snippet'>Trozo <b>{n}</b></td></tr>
<tr><td>&nbsp;</td><td><span class='link-text'>sitio{n}.example</span></td></tr>"""


def lite(*rows: str) -> str:
    """La página ligera."""
    return f"<html><body><form><input name=q></form><table border='0'>{''.join(rows)}</table></body></html>"


LITE_ROWS = [LITE_ROW.format(n=n, href=wrapped(f"https://sitio{n}.example/"), title=t) for n, t in enumerate(TITLES)]
LITE_AD = """<tr class='result-sponsored'><td>
<a href='https://duckduckgo.com/y.js?ad=1' class='result-link'>Anuncio</a></td></tr>"""


DUCKDUCKGO = {
    "html-ok-es": page(*FOUND),
    "html-ads": page(AD_CLASS, AD_LINK, AD_INSIDE, *FOUND[:2]),
    "html-only-ads": page(AD_CLASS, AD_LINK, AD_INSIDE),
    "html-no-result": page(NOTHING),
    "html-challenge": CHALLENGE,
    "html-echo-marker": page(*FOUND, query="anomaly.js challenge-form"),
    "html-missing-snippet": page(FOUND[0], block("Sin trozo", wrapped("https://b.example/"), None), FOUND[2]),
    "html-zero-click": page(*FOUND[:3], before=ZERO_CLICK),
    "html-only-zero-click": page(before=ZERO_CLICK),
    "html-plain-links": page(block("Directo", "https://directo.example/?utm_source=x&q=1#:~:text=hola", "Trozo")),
    "html-unknown": "<html><body><h1>Página nueva</h1></body></html>",
    "html-truncated": page(*FOUND)[:2600],
    "html-bad-links": page(block("Malo", "javascript:alert(1)", "x"), block("Roto", "http://[", "x"), FOUND[0]),
    "lite-ok": lite(*LITE_ROWS),
    "lite-ads": lite(LITE_AD, *LITE_ROWS[:2]),
    "lite-no-result": lite("<tr><td><span class='no-results'>No results.</span></td></tr>"),
    "lite-challenge": CHALLENGE.replace("sv=html", "sv=lite"),
    "empty": "",
}


def brave_error(status: int, code: str, **meta: object) -> str:
    """Un error de Brave."""
    return json.dumps({"type": "ErrorResponse", "error": {"status": status, "code": code, "detail": "x", "meta": meta}})


BRAVE_OK = json.dumps(
    {
        "type": "search",
        "query": {"original": "mate"},
        "web": {
            "results": [
                {"title": "Mate & yerba", "url": "https://www.a.example/", "description": "Uno", "age": "2 días"},
                {"title": "Sin trozo", "url": "https://b.example/?gclid=1"},
                {"title": "Repetido", "url": "https://www.a.example/", "description": "Otra vez"},
            ]
        },
    }
)
BRAVE_NOTHING = json.dumps({"type": "search", "query": {"original": "mate"}, "mixed": {}})
SEARXNG_OK = json.dumps(
    {
        "query": "mate",
        "results": [
            {"title": "Mate", "url": "https://a.example/", "content": "Uno", "engine": "x"},
            {"title": "", "url": "https://b.example/", "content": "sin título"},
            {"title": "Tres", "url": "ftp://c.example/", "content": "no es de la web"},
        ],
        "unresponsive_engines": [["otro", "timeout"]],
    }
)
SEARXNG_NOTHING = json.dumps({"query": "mate", "results": [], "unresponsive_engines": []})
SEARXNG_ALL_BLOCKED = json.dumps({"results": [], "unresponsive_engines": [["uno", "CAPTCHA"], ["dos", "timeout"]]})
