"""Cuatro líneas por error, un código de salida por clase y nunca una traza sin pedirla."""

import importlib
import re
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from enlace import errors
from enlace.cli.app import app
from enlace.errors import Cancelled, ConfigError, EnlaceError, Problem, ResourceError, guard, render, warn

ARCHITECTURE = Path(__file__).parents[2] / "docs" / "arquitectura.md"
CODES = {
    "EnlaceError": 1,
    "UsageError": 2,
    "InstallationError": 3,
    "ConfigError": 4,
    "NotFoundError": 5,
    "LockedError": 6,
    "CorruptDataError": 7,
    "ResourceError": 8,
    "RefusedError": 9,
    "Cancelled": 130,
}


def raising(error: BaseException) -> Callable[[], None]:
    def action() -> None:
        raise error

    return action


@pytest.mark.parametrize(("name", "code"), CODES.items())
def test_each_class_exits_with_its_code(name: str, code: int, capsys: pytest.CaptureFixture[str]) -> None:
    error = ConfigError([Problem("x.yaml:1", "a", "mal")]) if name == "ConfigError" else getattr(errors, name)("mal")
    assert guard(raising(error)) == code
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err == render(error) + "\n"


def test_no_class_is_left_out() -> None:
    classes = {name for name, value in vars(errors).items() if isinstance(value, type) and issubclass(value, Exception)}
    assert classes == set(CODES)


def test_the_codes_are_documented_where_a_person_looks() -> None:
    rows = re.findall(r"^\| (\d+) \|", ARCHITECTURE.read_text(), re.MULTILINE)
    assert [int(row) for row in rows] == [0, *CODES.values()]
    assert app.help is not None
    shown = re.findall(r"[:·]\s+(\d+) ", app.help.split("Códigos de salida")[1])
    assert [int(code) for code in shown] == [0, *CODES.values()]


def test_what_an_error_quotes_neither_commands_the_terminal_nor_floods_it() -> None:
    shown = render(EnlaceError("mal\n\x1b[31m\u202e", why="ñ" * 1_000_000))
    assert shown.splitlines()[:2] == ["error: mal", r"       \x1b[31m\u202e"]
    assert shown.endswith("ñ…") and len(shown) < 1100


def test_an_action_that_ends_well_exits_with_zero(capsys: pytest.CaptureFixture[str]) -> None:
    assert guard(lambda: None) == 0
    assert capsys.readouterr().err == ""


def test_what_where_why_and_hint_each_in_its_line_and_only_if_it_says_something() -> None:
    error = EnlaceError("qué", where="aquí", why="porque\nsí", fix="haz esto")
    assert render(error) == "error: qué\ndónde: aquí\npor qué: porque\n       sí\npista: haz esto"
    assert render(EnlaceError("qué", fix="haz esto")) == "error: qué\npista: haz esto"


def test_an_interruption_is_a_cancellation(capsys: pytest.CaptureFixture[str]) -> None:
    assert guard(raising(KeyboardInterrupt())) == Cancelled.exit_code
    assert capsys.readouterr().err == "error: cancelado\n"


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("raised", [KeyboardInterrupt, ValueError, EnlaceError])
def test_whatever_a_signal_makes_fail_is_a_cancellation(
    number: int, raised: type[BaseException], capsys: pytest.CaptureFixture[str]
) -> None:
    # El código en C de otras bibliotecas cambia a veces KeyboardInterrupt por un error suyo.
    def interrupted() -> None:
        try:
            signal.raise_signal(number)
        except KeyboardInterrupt:
            raise raised("a medias") from None

    handler = signal.getsignal(number)
    assert guard(interrupted) == Cancelled.exit_code
    assert capsys.readouterr().err == "error: cancelado\n"
    assert signal.getsignal(number) == handler


def test_the_exit_code_survives_a_full_disk_behind_stderr() -> None:
    code = "import sys; from enlace.errors import *; sys.exit(guard(lambda: (_ for _ in ()).throw(ResourceError('x'))))"
    with Path("/dev/full").open("w") as full:
        assert subprocess.run([sys.executable, "-c", code], stderr=full).returncode == ResourceError.exit_code


def test_a_defect_of_ours_is_told_as_such_and_its_traceback_only_with_debug(capsys: pytest.CaptureFixture[str]) -> None:
    assert guard(raising(ZeroDivisionError("entre cero"))) == 1
    plain = capsys.readouterr().err
    assert plain.startswith("error: fallo inesperado: ZeroDivisionError: entre cero\ndónde: ")
    assert f"{Path(__file__).name}:" in plain and "Traceback" not in plain
    assert guard(raising(ZeroDivisionError("entre cero")), debug=True) == 1
    assert "Traceback" in capsys.readouterr().err


def test_a_package_that_is_missing_says_how_to_install_it(capsys: pytest.CaptureFixture[str]) -> None:
    def needs() -> None:
        importlib.import_module("paquete_que_no_esta")

    assert guard(needs) == 3
    assert "falta el paquete paquete_que_no_esta" in (said := capsys.readouterr().err) and "scripts/setup.sh" in said


def test_a_config_error_carries_every_problem() -> None:
    problems = [Problem("a.yaml:1", "x", "mal"), Problem("b.yaml:2", "", "peor", "Así no.")]
    error = ConfigError(problems)
    assert error.what == "la configuración no es válida: 2 problemas"
    assert error.why == "a.yaml:1: «x»: mal\nb.yaml:2: peor Así no."


def test_a_warning_goes_to_stderr(capsys: pytest.CaptureFixture[str]) -> None:
    warn("se aparta")
    assert capsys.readouterr() == ("", "aviso: se aparta\n")
