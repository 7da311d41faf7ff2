"""Las órdenes de verdad, en su proceso, contra un servidor que hace de los tres servicios."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import get_args

import pytest

from enlace.cli.search import TIME_RANGES
from enlace.config.schema import TimeRange
from tests.agent.search import pages
from tests.agent.server import Route, Sent, Server, serving

CANARY = "canario-d04e"
Run = Callable[..., "subprocess.CompletedProcess[str]"]
HTML = {"Content-Type": "text/html; charset=utf-8"}
GOOD: dict[str, Route] = {
    "/html/": Sent(pages.DUCKDUCKGO["html-ok-es"].encode(), headers=HTML),
    "/lite/": Sent(pages.DUCKDUCKGO["lite-ok"].encode(), headers=HTML),
    "/res/v1/web/search": Sent(pages.BRAVE_OK.encode()),
    "/search": Sent(pages.SEARXNG_OK.encode()),
}


@pytest.fixture
def run(house: Path) -> Run:
    def command(
        *arguments: str, server: Server | None = None, **environment: str
    ) -> "subprocess.CompletedProcess[str]":
        module = arguments[0].startswith("enlace.")
        enlace = [str(Path(sys.executable).with_name("enlace"))]
        program = [sys.executable, "-m"] if module else enlace
        changes = ["--set", chain(server)] if server else []
        return subprocess.run(
            [*program, *arguments, *changes],
            env={**os.environ, **environment},
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )

    return command


def chain(server: Server) -> str:
    links = [
        f"{{role: primary, backend: duckduckgo, seconds_between_requests: 0, url: '{server.origin}'}}",
        f"{{role: fallback, backend: brave, seconds_between_requests: 0, url: '{server.origin}', monthly_requests: 5}}",
        f"{{role: fallback, backend: searxng, seconds_between_requests: 0, url: '{server.origin}', "
        "honours_safe_search: true}",
    ]
    return f"search.chain=[{', '.join(links)}]"


def test_search_shows_the_results_and_who_gave_them(run: Run) -> None:
    with serving(dict(GOOD)) as server:
        done = run("search", "qué es el mate", server=server)
    assert done.returncode == 0, done.stderr
    assert "1. Mate & yerba: cómo se ceba" in done.stdout
    assert "https://www.sitio0.example/" in done.stdout and "duckduckgo · ok" in done.stdout
    # Sin clave, Brave queda fuera y se dice una sola vez.
    assert done.stderr.count("aviso:") == 1 and "BRAVE_API_KEY" in done.stderr
    assert "fuera de la cadena" not in done.stdout


def test_verbose_shows_every_attempt_and_what_was_left_out(run: Run) -> None:
    with serving({**GOOD, "/html/": Sent(b"nueva")}) as server:
        done = run("search", "mate", "--verbose", server=server)
    assert "duckduckgo · formato_desconocido" in done.stdout and "duckduckgo-lite · ok" in done.stdout
    assert "✗ brave: fuera de la cadena: falta la credencial BRAVE_API_KEY" in done.stdout


def test_the_module_form_does_the_same(run: Run) -> None:
    with serving(dict(GOOD)) as server:
        first = run("search", "mate", "--json", server=server)
        second = run("enlace.agent.tools.search", "mate", "--json", server=server)
    one, two = json.loads(first.stdout), json.loads(second.stdout)
    assert (one["cached"], two["cached"]) == (False, True)
    assert one["results"] == two["results"] and len(server.received) == 1


def test_json_carries_every_attempt_and_what_was_left_out(run: Run) -> None:
    routes = {**GOOD, "/html/": Sent(b"nueva"), "/lite/": Sent(pages.CHALLENGE.encode(), status=202, headers=HTML)}
    with serving(routes) as server:
        done = run("search", "mate", "--json", server=server)
    answer = json.loads(done.stdout)
    assert [(each["backend"], each["outcome"]) for each in answer["intentos"]] == [
        ("duckduckgo", "formato_desconocido"),
        ("duckduckgo-lite", "bloqueado"),
        ("searxng", "ok"),
    ]
    assert all(isinstance(each["milliseconds"], int) for each in answer["intentos"])
    assert [each["backend"] for each in answer["dropped"]] == ["brave"]
    assert answer["results"] == [
        {"position": 1, "title": "Mate", "url": "https://a.example/", "snippet": "Uno", "source": "a.example"}
    ]


def test_when_all_fail_it_exits_with_1_and_every_attempt(run: Run) -> None:
    with serving({"*": Sent(b"", status=503)}) as server:
        person = run("search", "mate", server=server)
        program = run("search", "mate", "--json", server=server)
    assert (person.returncode, person.stdout, program.returncode) == (1, "", 1)
    for name in ("duckduckgo · red", "duckduckgo-lite · red", "searxng · red"):
        assert name in person.stderr
    assert [each["outcome"] for each in json.loads(program.stdout)["intentos"]] == ["red"] * 3
    assert "Traceback" not in person.stderr


def test_an_honest_zero_exits_with_0_and_says_so(run: Run) -> None:
    with serving({**GOOD, "/html/": Sent(pages.DUCKDUCKGO["html-no-result"].encode(), headers=HTML)}) as server:
        done = run("search", "zxqv", server=server)
    assert (done.returncode, len(server.received)) == (0, 1)
    assert "Nada sobre «zxqv»" in done.stdout


def test_the_key_reaches_brave_and_nothing_else(run: Run, house: Path) -> None:
    routes = {**GOOD, "/html/": Sent(pages.CHALLENGE.encode(), status=202, headers=HTML)}
    with serving(routes) as server:
        searched = run("search", "mate", "--json", "--verbose", server=server, BRAVE_API_KEY=CANARY)
        checked = run("agent", "check", "--live", "--json", server=server, BRAVE_API_KEY=CANARY)
        wrong = run("search", "otra", "--debug", server=server, BRAVE_API_KEY=f"{CANARY}\n")
    assert json.loads(searched.stdout)["intentos"][-1]["backend"] == "brave"
    with_key = [each.path for each in server.received if CANARY in str(each.headers)]
    assert with_key and set(with_key) == {"/res/v1/web/search"}
    for done in (searched, checked, wrong):
        assert CANARY not in done.stdout + done.stderr
    assert not any(CANARY.encode() in path.read_bytes() for path in (house / "hogar").rglob("*") if path.is_file())


def test_check_and_status_show_what_is_left_out_and_why(run: Run) -> None:
    for order in ("check", "status"):
        done = run("agent", order)
        assert done.returncode == 0
        assert "✓ duckduckgo (principal): en la cadena" in done.stdout
        assert "✗ brave: fuera de la cadena: falta la credencial BRAVE_API_KEY" in done.stdout
        assert "✓ searxng (suplente): en la cadena" in done.stdout


def test_status_shows_who_rests_and_what_was_spent(run: Run) -> None:
    routes = {**GOOD, "/html/": Sent(pages.CHALLENGE.encode(), status=202, headers=HTML)}
    with serving(routes) as server:
        run("search", "mate", server=server, BRAVE_API_KEY=CANARY)
        done = run("agent", "status", server=server, BRAVE_API_KEY=CANARY)
        found = json.loads(run("agent", "status", "--json", server=server, BRAVE_API_KEY=CANARY).stdout)
    assert "duckduckgo (principal): descansa hasta el" in done.stdout and "este mes, 1 de 5 peticiones" in done.stdout
    duck, paid, _ = found["chain"]
    assert duck["paused_until"] and "robot" in duck["reason"] and (paid["spent"], paid["monthly_requests"]) == (1, 5)


def test_check_asks_nothing_unless_live(run: Run) -> None:
    with serving(dict(GOOD)) as server:
        assert run("agent", "check", server=server).returncode == 0
        assert server.received == []
        live = run("agent", "check", "--live", server=server)
        assert live.returncode == 0 and "duckduckgo-lite · ok" in live.stdout
        assert [each.path for each in server.received] == ["/html/", "/lite/", "/search"]
        server.routes.clear()
        assert run("agent", "check", "--live", server=server).returncode == 1


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["search"], 2, "TEXTO"),
        (["search", "  "], 2, "no hay nada que buscar"),
        (["search", "x", "--time", "siglo"], 2, "day"),
        (["search", "x", "--config", "cas"], 5, "casa"),
        (["search", "x", "--set", "search.region=xx"], 4, "es-AR"),
        (
            ["search", "x", "--set", "search.chain=[{role: primary, backend: brave, seconds_between_requests: 1}]"],
            4,
            "BRAVE_API_KEY",
        ),
        (["enlace.agent.tools.search"], 2, "TEXTO"),
    ],
)
def test_what_is_wrong_is_told_in_spanish_with_its_exit_code(
    run: Run, arguments: list[str], code: int, words: str
) -> None:
    done = run(*arguments)
    assert done.returncode == code and words in done.stderr and "Traceback" not in done.stderr
    assert done.stdout == ""


def test_results_cannot_paint_the_terminal(run: Run) -> None:
    evil = pages.page(pages.block("\x1b[31mrojo\x07 [bold]negrita[/bold]", "https://a.example/", "\x9b2J \u202etrozo"))
    with serving({"/html/": Sent(evil.encode(), headers=HTML)}) as server:
        done = run("search", "mate", server=server)
    assert done.returncode == 0 and "[bold]negrita[/bold]" in done.stdout
    assert not any(char in done.stdout for char in "\x1b\x07\x9b\u202e")


def test_the_times_on_offer_are_those_of_the_configuration() -> None:
    assert get_args(TimeRange) == TIME_RANGES


def test_searching_never_imports_torch(run: Run) -> None:
    rooms = "enlace.agent.tools.search.__main__, enlace.agent.tools.page, enlace.store"
    code = f"import sys, {rooms}; print('torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"
