"""La capa del agente: lo que no vale se dice al leerla, con su fichero y su línea, y sin ningún secreto."""

from collections.abc import Callable
from pathlib import Path

import pytest

from enlace.config import check_all, load_agent
from enlace.errors import ConfigError, NotFoundError

CASA = Path(__file__).parents[2] / "configs" / "agent" / "casa.yaml"


@pytest.fixture
def casa(configs: Path) -> Path:
    path = configs / "agent" / "casa.yaml"
    path.parent.mkdir(exist_ok=True)
    path.write_text(CASA.read_text(encoding="utf-8"), encoding="utf-8")
    return path


def chain(*links: str) -> str:
    return f"search.chain=[{', '.join(f'{{{link}, seconds_between_requests: 1}}' for link in links)}]"


DUCK = "role: primary, backend: duckduckgo"


def test_the_shipped_one_goes_from_duckduckgo_to_its_fallbacks(casa: Path) -> None:
    links = load_agent("casa").search.chain
    assert [(link.role, link.backend) for link in links] == [
        ("primary", "duckduckgo"),
        ("fallback", "brave"),
        ("fallback", "searxng"),
    ]


def test_by_name_or_by_path_and_with_changes(casa: Path) -> None:
    changed = load_agent(str(casa), ["search.region=es-ES", "web.ca_file=casa.pem"])
    assert (changed.search.region, changed.web.ca_file) == ("es-ES", "casa.pem")


def test_one_that_does_not_exist_says_which_there_are(casa: Path) -> None:
    with pytest.raises(NotFoundError) as caught:
        load_agent("cas")
    assert "casa" in caught.value.fix


@pytest.mark.parametrize(
    ("change", "key", "message"),
    [
        ("search.region=es-XX", "search.region", "es-AR, es-CL"),
        ("search.safe_search=estricta", "search.safe_search", "off, moderate o strict"),
        ("search.chian=[]", "search.chian", "¿Quisiste decir «search.chain»?"),
        ("search.chain=[]", "search.chain", ""),
        (chain("role: fallback, backend: brave", DUCK), "search.chain", "solo el primero"),
        (chain(DUCK, "role: fallback, backend: duckduckgo"), "search.chain", "dos veces"),
        (chain("role: primary, backend: searxng"), "search.chain.0.backend", "falta «url»"),
        (chain(f"{DUCK}, honours_safe_search: true"), "search.chain.0.honours_safe_search", "solo vale con searxng"),
        (chain("role: primary, backend: searxng, url: 'http://x'"), "search.chain.0.backend", "«honours_safe_search»"),
        (chain("role: primary, backend: google"), "search.chain.0.backend", "duckduckgo, brave o searxng"),
        ("web.user_agent=ñandú", "web.user_agent", ""),
        ("web.timeout_seconds=0", "web.timeout_seconds", "mayor que 0"),
        ("web.verify=false", "web.verify", "clave desconocida"),
    ],
)
def test_what_is_not_valid_is_told_with_its_key(casa: Path, change: str, key: str, message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        load_agent("casa", [change])
    assert [problem.key for problem in caught.value.problems] == [key]
    assert message in caught.value.problems[0].text


@pytest.mark.parametrize(
    "url",
    [
        "ftp://casa",
        "127.0.0.1:8888",
        "http://",
        "http://u:c@casa",
        "http://casa/?q=1",
        "http://casa:99999",
        "http://ca sa",
    ],
)
def test_the_address_of_a_searxng_is_checked_when_it_is_read(casa: Path, url: str) -> None:
    own = f"role: primary, backend: searxng, honours_safe_search: true, url: '{url}'"
    with pytest.raises(ConfigError) as caught:
        load_agent("casa", [chain(own)])
    assert caught.value.problems[0].key == "search.chain.0.url"


def test_a_broken_file_is_told_by_file_and_line_and_by_config_check(
    casa: Path, edit: Callable[[str, str, str], None]
) -> None:
    edit("agent/casa", "region: es-AR", "region: ar")
    lines = casa.read_text(encoding="utf-8").splitlines()
    (line,) = [number for number, text in enumerate(lines, 1) if "region: ar" in text]
    for load in (lambda: load_agent("casa"), lambda: check_all(Path("configs"))):
        with pytest.raises(ConfigError) as caught:
            load()
        assert [problem.where for problem in caught.value.problems] == [f"configs/agent/casa.yaml:{line}"]


def test_an_unreadable_file_is_the_only_problem_told(casa: Path) -> None:
    casa.write_text("search: [", encoding="utf-8")
    with pytest.raises(ConfigError) as caught:
        load_agent("casa")
    assert len(caught.value.problems) == 1


def test_a_house_can_be_based_on_another(casa: Path) -> None:
    (casa.parent / "peques.yaml").write_text("include: casa\nsearch:\n  safe_search: strict\n", encoding="utf-8")
    assert load_agent("peques").search.safe_search == "strict"
    assert load_agent("peques").search.region == load_agent("casa").search.region
