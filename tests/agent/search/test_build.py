"""La regla de la casa: al principal no le falta nada; a un suplente sí le puede faltar, y se ve."""

import itertools
import sqlite3
import warnings
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from enlace.agent.tools.search.build import DegradedChain, build_backend
from enlace.agent.tools.search.chain import Chain
from enlace.config import check_all, load_agent
from enlace.config.schema import Agent
from enlace.errors import ConfigError, render

CANARY = "canario-77aa"
PRESENT = {"entorno": True, "fichero": True, "en blanco": False, "vacía": False, "ausente": False}


def put_key(how: str, monkeypatch: pytest.MonkeyPatch) -> None:
    Path(".env").unlink(missing_ok=True)
    monkeypatch.delenv("BRAVE_API_KEY", raising=False)
    if how == "fichero":
        Path(".env").write_text(f"BRAVE_API_KEY={CANARY}\n")
    elif how != "ausente":
        monkeypatch.setenv("BRAVE_API_KEY", {"entorno": CANARY, "en blanco": "   ", "vacía": ""}[how])


def configured(*links: tuple[str, str], safe: str = "moderate", honours: bool = False) -> Agent:
    texts = []
    for role, backend in links:
        own = (
            f", url: 'http://127.0.0.1:8888', honours_safe_search: {str(honours).lower()}"
            if backend == "searxng"
            else ""
        )
        texts.append(f"{{role: {role}, backend: {backend}, seconds_between_requests: 0{own}}}")
    return load_agent("casa", [f"search.chain=[{', '.join(texts)}]", f"search.safe_search={safe}"])


def build(agent: Agent) -> tuple[Chain, list[str]]:
    """La cadena, ya cerrada, y los avisos que dio."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        with build_backend(agent) as chain:
            pass
    assert all(each.category is DegradedChain for each in caught)
    return chain, [str(each.message) for each in caught]


def names(chain: Chain) -> list[str]:
    return [link.backend.name for link in chain.links if link.only_after is None]


@pytest.mark.parametrize("how", PRESENT)
@pytest.mark.parametrize("backend", ["duckduckgo", "brave", "searxng"])
def test_a_primary_needs_its_credential_and_says_which_and_where(
    house: Path, monkeypatch: pytest.MonkeyPatch, backend: str, how: str
) -> None:
    put_key(how, monkeypatch)
    agent = configured(("primary", backend))
    if backend == "brave" and not PRESENT[how]:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            with pytest.raises(ConfigError) as caught:
                build_backend(agent)
        assert (
            caught.value.what == "falta la credencial BRAVE_API_KEY, que se escribe en el fichero .env o en el entorno"
        )
        assert caught.value.exit_code == 4
    else:
        chain, said = build(agent)
        assert (names(chain), chain.dropped, said) == ([backend], (), [])


@pytest.mark.parametrize("how", PRESENT)
@pytest.mark.parametrize(
    "fallbacks", [order for n in (1, 2) for order in itertools.permutations(["brave", "searxng"], n)]
)
def test_a_fallback_without_its_credential_is_left_out_once_and_visibly(
    house: Path, monkeypatch: pytest.MonkeyPatch, fallbacks: tuple[str, ...], how: str
) -> None:
    put_key(how, monkeypatch)
    agent = configured(("primary", "duckduckgo"), *(("fallback", each) for each in fallbacks))
    chain, said = build(agent)
    missing = "brave" in fallbacks and not PRESENT[how]
    assert names(chain) == ["duckduckgo", *(each for each in fallbacks if not (missing and each == "brave"))]
    assert [each.backend for each in chain.dropped] == (["brave"] if missing else [])
    assert len(said) == (1 if missing else 0)
    if missing:
        assert "BRAVE_API_KEY" in chain.dropped[0].reason and "BRAVE_API_KEY" in said[0]
    # Otra vez es otro aviso: uno por construcción.
    assert len(build(agent)[1]) == len(said)


def test_several_left_out_are_still_one_warning(house: Path) -> None:
    chain, said = build(
        configured(("primary", "duckduckgo"), ("fallback", "brave"), ("fallback", "searxng"), safe="strict")
    )
    assert [each.backend for each in chain.dropped] == ["brave", "searxng"]
    assert len(said) == 1 and "brave" in said[0] and "searxng" in said[0]


def test_with_no_backend_left_it_does_not_start(house: Path) -> None:
    with pytest.raises(ConfigError) as caught:
        build_backend(configured(("fallback", "brave")))
    assert "no queda ningún buscador" in caught.value.what and "BRAVE_API_KEY" in caught.value.why


@pytest.mark.parametrize("honours", [True, False])
@pytest.mark.parametrize("role", ["primary", "fallback"])
def test_who_cannot_be_strict_is_refused_for_a_strict_house(house: Path, role: str, honours: bool) -> None:
    others = [] if role == "primary" else [("primary", "duckduckgo")]
    agent = configured(*others, (role, "searxng"), safe="strict", honours=honours)
    if honours:
        assert build(agent)[1] == []
    elif role == "primary":
        with pytest.raises(ConfigError, match="modo estricto"):
            build_backend(agent)
    else:
        chain, said = build(agent)
        assert (names(chain), len(said)) == (["duckduckgo"], 1)


def test_a_credentials_file_that_cannot_be_read_leaves_out_only_who_needs_it(house: Path) -> None:
    Path(".env").write_bytes(f"BRAVE_API_KEY={CANARY}ñ\n".encode("latin-1"))
    chain, said = build(configured(("primary", "duckduckgo"), ("fallback", "brave")))
    assert names(chain) == ["duckduckgo"]
    assert len(said) == 1 and CANARY not in said[0]


@pytest.mark.parametrize("how", PRESENT)
def test_reading_the_configuration_needs_no_secret_and_touches_nothing(
    house: Path, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    put_key(how, monkeypatch)
    assert check_all(Path("configs"))
    assert CANARY not in repr(load_agent("casa"))
    assert not (house / "hogar").exists()


def test_the_key_is_seen_nowhere(house: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    put_key("entorno", monkeypatch)
    agent = configured(("primary", "brave"))
    chain, _ = build(agent)
    assert CANARY not in f"{chain.links!r} {chain.dropped!r} {agent!r} {vars(chain)!r} {chain.links[0].backend!s}"


def test_a_key_that_would_break_a_header_counts_as_not_valid(house: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BRAVE_API_KEY", f"{CANARY}\r\nX: 1")
    with pytest.raises(ConfigError) as caught:
        build_backend(configured(("primary", "brave")))
    assert "no vale" in caught.value.what and CANARY not in render(caught.value)


@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_any_chain_starts_or_says_why(house: Path, monkeypatch: pytest.MonkeyPatch, data: st.DataObject) -> None:
    put_key(data.draw(st.sampled_from(list(PRESENT))), monkeypatch)
    order = data.draw(st.permutations(["duckduckgo", "brave", "searxng"]))[: data.draw(st.integers(1, 3))]
    first = data.draw(st.sampled_from(["primary", "fallback"]))
    safe = data.draw(st.sampled_from(["off", "moderate", "strict"]))
    links = [(first if number == 0 else "fallback", each) for number, each in enumerate(order)]
    agent = configured(*links, safe=safe, honours=data.draw(st.booleans()))
    try:
        chain, said = build(agent)
    except ConfigError:
        return
    assert names(chain)
    assert len(names(chain)) + len(chain.dropped) == len(order)
    assert len(said) == bool(chain.dropped)
    assert first == "fallback" or names(chain)[0] == order[0]


def test_the_state_of_the_house_lives_in_its_database(house: Path) -> None:
    build(configured(("primary", "duckduckgo")))
    database = house / "hogar" / "household.db"
    assert database.stat().st_mode & 0o777 == 0o600
    tables = sqlite3.connect(database).execute("SELECT name FROM sqlite_schema WHERE type = 'table'").fetchall()
    assert ("search_cache",) in tables
