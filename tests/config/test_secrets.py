"""Las credenciales no se leen al cargar una configuración ni se ven en ninguna salida."""

from pathlib import Path

import pytest

from enlace.config import Secrets, check_all, dump, load_run, read_secrets, require
from enlace.errors import ConfigError, render

CANARY = "canario-6f1d2c"


@pytest.fixture(autouse=True)
def clean_environment(configs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("BRAVE_API_KEY", raising=False)


def write_env(content: bytes) -> None:
    Path(".env").write_bytes(content)


def test_the_canary_never_shows(monkeypatch: pytest.MonkeyPatch) -> None:
    write_env(f"BRAVE_API_KEY={CANARY}\nOTRA=1\n".encode())
    secrets = read_secrets()
    for shown in (repr(secrets), str(secrets), secrets.model_dump_json(), str(secrets.model_dump()), f"{secrets!s:>5}"):
        assert CANARY not in shown
    assert CANARY not in repr(require("brave_api_key"))
    assert require("brave_api_key").get_secret_value() == CANARY


def test_the_environment_wins_over_the_file(monkeypatch: pytest.MonkeyPatch) -> None:
    write_env(b"BRAVE_API_KEY=del-fichero\n")
    monkeypatch.setenv("BRAVE_API_KEY", "del-entorno")
    assert require("brave_api_key").get_secret_value() == "del-entorno"


@pytest.mark.parametrize("content", [None, b"", b"BRAVE_API_KEY=\n", b"BRAVE_API_KEY='  '\n", b"OTRA=1\n"])
def test_a_missing_secret_says_which_and_where_to_put_it(content: bytes | None) -> None:
    if content is not None:
        write_env(content)
    with pytest.raises(ConfigError) as caught:
        require("brave_api_key")
    assert caught.value.what == "falta la credencial BRAVE_API_KEY, que se escribe en el fichero .env o en el entorno"
    assert caught.value.fix == "escribe BRAVE_API_KEY=… en el fichero .env (el modelo es .env.example)"


def test_a_secret_that_would_break_a_header_is_refused_without_showing_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BRAVE_API_KEY", f"{CANARY}\r\nX-Otra: 1")
    with pytest.raises(ConfigError) as caught:
        require("brave_api_key")
    assert CANARY not in render(caught.value)


def test_an_unreadable_file_fails_without_showing_it() -> None:
    write_env(f"BRAVE_API_KEY={CANARY}ñ\n".encode("latin-1"))
    with pytest.raises(ConfigError) as caught:
        read_secrets()
    assert CANARY not in render(caught.value)
    assert caught.value.__cause__ is None
    assert caught.value.problems[0].where == ".env"


@pytest.mark.parametrize("poison", [None, b"\xff\xfe\x00", b"TRAIN__SEED=666\nNAME=otro\nRUNS_DIR=/\n"])
def test_a_configuration_never_reads_secrets_nor_the_environment(
    configs: Path, monkeypatch: pytest.MonkeyPatch, poison: bytes | None
) -> None:
    expected = load_run(configs / "runs/smoke-cpu.yaml").run
    monkeypatch.setenv("SEED", "666")
    monkeypatch.setenv("BRAVE_API_KEY", CANARY)
    if poison is not None:
        write_env(poison)
    assert load_run(configs / "runs/smoke-cpu.yaml").run == expected
    assert CANARY not in dump(expected)
    assert check_all(configs)


def test_the_example_file_lists_every_secret() -> None:
    example = (Path(__file__).parents[2] / ".env.example").read_text(encoding="utf-8")
    names = {line.split("=")[0] for line in example.splitlines() if line and not line.startswith("#")}
    server = {name for name in names if name.startswith("ENLACE_REMOTE_")}  # de scripts/remote.sh: no son secretos
    assert names - server == {name.upper() for name in Secrets.model_fields}
