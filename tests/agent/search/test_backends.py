"""Los buscadores: qué piden exactamente y qué final sale de cada respuesta, llegue lo que llegue."""

import gzip
import json
import time
from collections.abc import Callable, Mapping
from http.server import BaseHTTPRequestHandler
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import SecretStr

from enlace.agent.tools.search import brave, duckduckgo, searxng
from enlace.agent.tools.search.outcome import Outcome, Reply, Request, SearchBackend
from enlace.agent.tools.search.query import clean_query, shorten
from enlace.agent.tools.search.results import clean_url, retry_after
from enlace.agent.web import WebClient
from enlace.config.schema import Region, SafeSearch, TimeRange
from enlace.errors import UsageError
from tests.agent.search import pages
from tests.agent.server import Received, Route, Sent, Server, serving, web_config
from tests.labels import label

CANARY = "canario-5b27"
Parse = Callable[[int, Mapping[str, str], str], Reply]
PARSERS: list[Parse] = [duckduckgo.parse, brave.parse, searxng.parse]
EVERYTHING = [*pages.DUCKDUCKGO.values(), pages.BRAVE_OK, pages.SEARXNG_OK, pages.brave_error(422, "VALIDATION")]


def request(text: str = "mate amargo", **changes: object) -> Request:
    settings = {"region": "es-AR", "safe_search": "moderate", "time_range": None, "max_results": 10, **changes}
    return Request(text, **settings)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("kind", "status", "outcome", "count"),
    [
        ("html-ok-es", 200, "ok", 10),
        ("html-ok-es", 202, "ok", 10),
        ("html-ads", 200, "ok", 2),
        ("html-only-ads", 200, "formato_desconocido", 0),
        ("html-no-result", 200, "sin_resultados", 0),
        ("html-no-result", 202, "sin_resultados", 0),
        ("html-challenge", 202, "bloqueado", 0),
        ("html-challenge", 200, "bloqueado", 0),
        ("html-challenge", 403, "bloqueado", 0),
        ("html-echo-marker", 200, "ok", 10),
        ("html-missing-snippet", 200, "ok", 3),
        ("html-zero-click", 200, "ok", 3),
        ("html-only-zero-click", 200, "formato_desconocido", 0),
        ("html-plain-links", 200, "ok", 1),
        ("html-unknown", 200, "formato_desconocido", 0),
        ("html-truncated", 200, "ok", 4),
        ("html-bad-links", 200, "ok", 1),
        ("lite-ok", 200, "ok", 10),
        ("lite-ads", 200, "ok", 2),
        ("lite-no-result", 200, "sin_resultados", 0),
        ("lite-challenge", 202, "bloqueado", 0),
        ("empty", 200, "formato_desconocido", 0),
        ("empty", 303, "formato_desconocido", 0),
        ("html-ok-es", 429, "limite", 0),
        ("html-ok-es", 418, "bloqueado", 0),
        ("html-ok-es", 503, "red", 0),
    ],
)
def test_every_page_of_duckduckgo_has_its_outcome(kind: str, status: int, outcome: str, count: int) -> None:
    reply = duckduckgo.parse(status, {}, pages.DUCKDUCKGO[kind])
    assert (reply.outcome.value, len(reply.results)) == (outcome, count)
    assert bool(reply.reason) == (outcome not in ("ok", "sin_resultados"))


def test_a_result_comes_clean() -> None:
    first, second, *_ = duckduckgo.parse(200, {}, pages.DUCKDUCKGO["html-ok-es"]).results
    assert (first.title.text, first.url, first.snippet.text, first.source, first.position) == (
        "Mate & yerba: cómo se ceba",
        "https://www.sitio0.example/a?b=0&c=ñ",
        "Trozo mate 0",
        "sitio0.example",
        1,
    )
    assert (second.title.text, second.position) == ("El mate en Mendoza 'de campo'", 2)


def test_a_missing_snippet_does_not_take_the_others_with_it() -> None:
    results = duckduckgo.parse(200, {}, pages.DUCKDUCKGO["html-missing-snippet"]).results
    assert [result.snippet.text for result in results] == ["Trozo mate 0", "", "Trozo mate 2"]


def test_the_light_page_gives_the_same() -> None:
    results = duckduckgo.parse(200, {}, pages.DUCKDUCKGO["lite-ok"]).results
    assert [(each.url, each.snippet.text) for each in results[:2]] == [
        ("https://sitio0.example/", "Trozo 0"),
        ("https://sitio1.example/", "Trozo 1"),
    ]


def test_a_page_in_latin_1_keeps_its_accents() -> None:
    body = pages.DUCKDUCKGO["html-ok-es"].encode("latin-1", "xmlcharrefreplace")
    with serving({"*": Sent(body, headers={"Content-Type": "text/html; charset=ISO-8859-1"})}) as server:
        reply = duckduckgo.DuckDuckGo(client(server), server.origin).search(request())
    assert reply.results[2].title.text == "¿Qué es el mate? — Preguntas"


@pytest.mark.parametrize(
    ("status", "body", "outcome"),
    [
        (200, pages.BRAVE_OK, "ok"),
        (200, pages.BRAVE_NOTHING, "sin_resultados"),
        (200, json.dumps({"type": "search", "web": {"results": []}}), "sin_resultados"),
        (200, json.dumps({"type": "search", "web": {"results": [{"titulo": "x"}]}}), "formato_desconocido"),
        (200, json.dumps({"type": "search", "web": [1]}), "formato_desconocido"),
        (200, "<html>", "formato_desconocido"),
        (200, pages.brave_error(200, "X"), "formato_desconocido"),
        (401, pages.brave_error(401, "X"), "credencial"),
        (403, "", "credencial"),
        (422, pages.brave_error(422, "SUBSCRIPTION_TOKEN_INVALID"), "credencial"),
        (422, pages.brave_error(422, "VALIDATION", errors=[{"loc": ["query", "country"]}]), "formato_desconocido"),
        (402, pages.brave_error(402, "PAYMENT"), "limite"),
        (429, pages.brave_error(429, "RATE_LIMITED"), "limite"),
        (500, "", "red"),
        (301, "", "formato_desconocido"),
    ],
    ids=label,
)
def test_every_answer_of_brave_has_its_outcome(status: int, body: str, outcome: str) -> None:
    assert brave.parse(status, {}, body).outcome == outcome


def test_brave_says_what_it_did_not_admit_and_gives_clean_results() -> None:
    rejected = pages.brave_error(422, "VALIDATION", errors=[{"loc": ["query", "country"]}, {"loc": 3}, 7])
    assert "country" in brave.parse(422, {}, rejected).reason
    results = brave.parse(200, {}, pages.BRAVE_OK).results
    assert [(each.title.text, each.url, each.snippet.text) for each in results] == [
        ("Mate & yerba", "https://www.a.example/", "Uno"),
        ("Sin trozo", "https://b.example/", ""),
    ]


@pytest.mark.parametrize(
    ("remaining", "reset", "seconds"),
    [
        ("0, 100", "1, 1419704", 1),
        ("1, 0", "1, 1419704", 1419704),
        ("0,0", "1,90", 90),
        ("1, 1", "1, 9", None),
        ("x", "y", None),
    ],
)
def test_brave_waits_for_the_window_that_ran_out(remaining: str, reset: str, seconds: float | None) -> None:
    headers = {"x-ratelimit-remaining": remaining, "x-ratelimit-reset": reset}
    assert brave.parse(429, headers, "").retry_after == seconds


@pytest.mark.parametrize(
    ("status", "body", "outcome", "words"),
    [
        (200, pages.SEARXNG_OK, "ok", ""),
        (200, pages.SEARXNG_NOTHING, "sin_resultados", ""),
        (200, pages.SEARXNG_ALL_BLOCKED, "bloqueado", "uno, dos"),
        (403, "", "formato_desconocido", "search.formats: [html, json]"),
        (200, "<!DOCTYPE html><html>", "formato_desconocido", "search.formats: [html, json]"),
        (200, "[]", "formato_desconocido", "search.formats"),
        (200, "{}", "formato_desconocido", "lista"),
        (200, '{"results": [7, {}]}', "formato_desconocido", "título"),
        (429, "", "limite", "429"),
        (502, "", "red", "502"),
    ],
    ids=label,
)
def test_every_answer_of_searxng_has_its_outcome(status: int, body: str, outcome: str, words: str) -> None:
    reply = searxng.parse(status, {}, body)
    assert reply.outcome == outcome and words in reply.reason


@pytest.mark.parametrize(
    ("text", "seconds"), [("120", 120), ("Tue, 01 Dec 2026 12:02:00 GMT", 120), ("nunca", None), ("", None)]
)
def test_a_retry_after_is_read_in_seconds_or_as_a_date(text: str, seconds: float | None) -> None:
    assert retry_after(text, 1796126400.0) == seconds


@pytest.mark.parametrize(
    ("address", "clean"),
    [
        ("https://a.example", "https://a.example/"),
        ("https://a.example/?utm_source=x&q=1&fbclid=2#parte", "https://a.example/?q=1#parte"),
        ("https://a.example/?solo", "https://a.example/?solo"),
        ("https://a.example/#:~:text=hola", "https://a.example/"),
        ("//a.example/", ""),
        ("ftp://a.example/", ""),
        ("https://u:c@casa/", ""),
        ("https://a.example/\x1b[31m", ""),
        ("http://[", ""),
        ("https://a.example/" + "x" * 3000, ""),
    ],
)
def test_addresses_come_out_clean(address: str, clean: str) -> None:
    assert clean_url(address) == clean


def client(server: Server) -> WebClient:
    return WebClient(web_config(), allowed_origins=[server.origin])


def backends(server: Server, web: WebClient | None = None) -> dict[str, SearchBackend]:
    web = web or client(server)
    return {
        "duckduckgo": duckduckgo.DuckDuckGo(web, f"{server.origin}/html/"),
        "duckduckgo-lite": duckduckgo.DuckDuckGoLite(web, f"{server.origin}/lite/"),
        "brave": brave.Brave(web, SecretStr(CANARY), f"{server.origin}/res/v1/web/search"),
        "searxng": searxng.SearxNG(web, server.origin),
    }


@pytest.mark.parametrize("name", ["duckduckgo", "duckduckgo-lite", "brave", "searxng"])
def test_each_is_called_by_its_name(name: str) -> None:
    with serving({}) as server:
        assert backends(server)[name].name == name


@pytest.mark.parametrize("safe", get_args(SafeSearch))
def test_the_safe_search_travels_written_in_every_request(safe: SafeSearch) -> None:
    with serving({"*": Sent(b"")}) as server:
        for backend in backends(server).values():
            backend.search(request(safe_search=safe))
    html, lite, paid, own = server.received
    duck = {"strict": "1", "moderate": "-1", "off": "-2"}[safe]
    assert [html.form["kp"], lite.form["kp"]] == [duck, duck]
    assert f"p={duck}" in html.headers["cookie"]
    assert (paid.form["safesearch"], own.form["safesearch"]) == (
        safe,
        {"strict": "2", "moderate": "1", "off": "0"}[safe],
    )


@pytest.mark.parametrize("region", get_args(Region))
def test_every_region_is_known_to_every_service(region: Region) -> None:
    assert duckduckgo.form(request(region=region))["kl"].endswith("es")
    assert brave.params(request(region=region))["search_lang"] == "es"
    assert searxng.params(request(region=region))["language"].startswith("es")


def test_a_region_reaches_each_service_in_its_own_words() -> None:
    asked = request(region="es-MX")
    assert duckduckgo.form(asked)["kl"] == "mx-es"
    assert (brave.params(asked)["country"], brave.params(asked)["ui_lang"]) == ("MX", "es-MX")
    assert searxng.params(asked)["language"] == "es-MX"


@pytest.mark.parametrize("time_range", [None, *get_args(TimeRange)])
def test_the_time_reaches_each_service_in_its_own_words(time_range: TimeRange | None) -> None:
    asked = request(time_range=time_range)
    found = [
        duckduckgo.form(asked).get("df"),
        brave.params(asked).get("freshness"),
        searxng.params(asked).get("time_range"),
    ]
    expected = {
        None: [None, None, None],
        "day": ["d", "pd", "day"],
        "week": ["w", "pw", "month"],
        "month": ["m", "pm", "month"],
        "year": ["y", "py", "year"],
    }
    assert found == expected[time_range]


def test_the_requests_are_the_ones_each_service_expects() -> None:
    with serving({"*": Sent(b"")}) as server:
        for backend in backends(server).values():
            backend.search(request("qué es el ñandú"))
    html, lite, paid, own = server.received
    assert [(each.method, each.path) for each in server.received] == [
        ("POST", "/html/"),
        ("POST", "/lite/"),
        ("GET", "/res/v1/web/search"),
        ("GET", "/search"),
    ]
    assert html.form == lite.form == {"q": "qué es el ñandú", "b": "", "kl": "ar-es", "kp": "-1"}
    assert html.headers["accept-language"].startswith("es-AR")
    assert (paid.headers["x-subscription-token"], paid.form["q"], paid.form["count"]) == (
        CANARY,
        "qué es el ñandú",
        "10",
    )
    assert (own.form["format"], own.form["q"], own.form["language"]) == ("json", "qué es el ñandú", "es-AR")
    assert all("x-subscription-token" not in each.headers for each in (html, lite, own))


def test_who_cannot_be_reached_is_an_outcome_not_an_error() -> None:
    with serving({}) as server:
        asked = backends(server)
    for backend in asked.values():
        reply = backend.search(request())
        assert (reply.outcome, bool(reply.reason)) == (Outcome.NETWORK, True)


def slow(_request: Received, _handler: object) -> None:
    time.sleep(1.0)


def dropped(_request: Received, handler: BaseHTTPRequestHandler) -> None:
    handler.connection.shutdown(2)


@pytest.mark.parametrize("name", ["duckduckgo", "duckduckgo-lite", "brave", "searxng"])
@pytest.mark.parametrize(
    ("route", "outcomes"),
    [
        (slow, ["red"]),
        (dropped, ["red"]),
        (Sent(gzip.compress(bytes(50_000_000)), headers={"Content-Encoding": "gzip"}), ["red"]),
        (Sent(b"<html>", headers={"Content-Length": "9999"}), ["red"]),
        (Sent(b"<html>ma\xf1ana", headers={"Content-Type": "text/html; charset=latin-1"}), ["formato_desconocido"]),
        (Sent(status=302, headers={"Location": "http://192.168.1.1/"}), ["red", "formato_desconocido"]),
        (Sent(b"\x00\xff\xfe"), ["formato_desconocido"]),
    ],
    ids=label,
)
def test_whatever_goes_wrong_on_the_way_is_an_outcome(name: str, route: Route, outcomes: list[str]) -> None:
    with serving({"*": route}) as server:
        web = WebClient(web_config(timeout_seconds=0.3), allowed_origins=[server.origin])
        reply = backends(server, web)[name].search(request())
    assert reply.outcome.value in outcomes and reply.reason


def test_the_key_is_seen_nowhere() -> None:
    with serving({"*": Sent(f"clave {CANARY}".encode(), status=401)}) as server:
        backend = backends(server)["brave"]
        reply = backend.search(request())
    assert reply.outcome is Outcome.CREDENTIAL
    assert CANARY not in f"{backend!r} {backend} {reply!r}"


@pytest.mark.parametrize("word", ["!g", "g!", "!ducky", "!!w", "\\mate", ":en", "<9"])
def test_no_word_is_an_order_for_the_service(word: str) -> None:
    text = f"mate {word} dulce"
    sent = {duckduckgo.form(request(text))["q"], searxng.params(request(text))["q"]}
    assert f'mate "{word}" dulce' in sent
    special_for_duck = word[0] in "!\\" or word[-1] == "!"
    assert (text in sent) == (not special_for_duck or word[0] not in "!:<")


def test_spanish_exclamations_are_not_orders() -> None:
    assert duckduckgo.form(request("¡vamos! equipo"))["q"] == "¡vamos! equipo"


def test_long_searches_are_cut_to_what_each_service_takes() -> None:
    long = "palabra " * 200
    assert len(duckduckgo.form(request(long.strip()))["q"]) <= 499
    sent = brave.params(request(long.strip()))["q"]
    assert len(sent) <= 400 and len(sent.split()) <= 50 and sent.endswith("palabra")
    assert len(shorten("x" * 900, characters=400)) == 400


@given(st.text(max_size=700))
def test_any_text_is_searched_clean_or_refused(text: str) -> None:
    try:
        clean = clean_query(text)
    except UsageError:
        return
    assert clean and clean.isprintable() and clean == " ".join(clean.split())
    assert clean_query(clean) == clean
    assert len(duckduckgo.form(request(clean))["q"]) <= 499


STATUSES = st.sampled_from([200, 202, 301, 401, 402, 403, 404, 418, 422, 429, 500, 503])
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(
            st.sampled_from(["type", "web", "results", "title", "url", "description", "error", "meta", "errors", "loc"])
            | st.text(max_size=5),
            inner,
            max_size=5,
        )
    ),
    max_leaves=20,
)


@pytest.mark.parametrize("parse", PARSERS)
@given(status=STATUSES, text=st.text(max_size=300) | st.binary(max_size=300).map(lambda raw: raw.decode("latin-1")))
def test_any_text_has_an_outcome(parse: Parse, status: int, text: str) -> None:
    assert isinstance(parse(status, {}, text), Reply)


@pytest.mark.parametrize("parse", PARSERS)
@given(status=STATUSES, value=JSON)
def test_any_json_has_an_outcome(parse: Parse, status: int, value: object) -> None:
    assert isinstance(parse(status, {}, json.dumps(value)), Reply)
    assert isinstance(parse(status, {}, json.dumps({"type": "search", "web": value, "results": value})), Reply)


@pytest.mark.parametrize("parse", PARSERS)
@given(data=st.data())
def test_a_page_spoiled_anywhere_has_an_outcome(parse: Parse, data: st.DataObject) -> None:
    text = data.draw(st.sampled_from(EVERYTHING))
    start = data.draw(st.integers(0, len(text)))
    end = data.draw(st.integers(start, len(text)))
    reply = parse(data.draw(STATUSES), {}, text[:start] + data.draw(st.text(max_size=10)) + text[end:])
    assert (reply.outcome is Outcome.OK) == bool(reply.results)


@pytest.mark.parametrize("parse", PARSERS)
@pytest.mark.parametrize(
    "text",
    [
        "[" * 100_000,
        '{"a":' * 100_000,
        "<div>" * 50_000,
        '{"results": NaN}',
        "\ud800",
        '{"type": "\\ud800"}',
        "\x00" * 9,
    ],
)
def test_hostile_text_has_an_outcome(parse: Parse, text: str) -> None:
    assert parse(200, {}, text).outcome in (Outcome.UNKNOWN_FORMAT, Outcome.BLOCKED, Outcome.NO_RESULTS)
