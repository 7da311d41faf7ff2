"""La puerta de entrada: ayuda en una página, errores en claro y códigos de salida."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from enlace import __version__
from enlace.cli import main

HEAVY = ("torch", "numpy", "pydantic", "transformers", "rich")


def test_help_fits_in_one_page_and_names_every_command(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--help"]) == 0
    text = capsys.readouterr().out
    assert len(text.splitlines()) <= 30
    assert all(f"\n  {name} " in text for name in ("doctor", "config", "train", "generate", "completion"))


def test_without_arguments_shows_the_help(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 0
    assert capsys.readouterr().out.startswith("Uso: enlace [OPCIONES] ORDEN [ARGUMENTOS]…")


def test_help_imports_nothing_heavy() -> None:
    code = f"import sys; from enlace.cli import main; main(['--help']); print([m for m in {HEAVY} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"


def test_the_short_form_of_help_works_everywhere(capsys: pytest.CaptureFixture[str]) -> None:
    for command in ([], ["train"], ["config", "show"]):
        assert main([*command, "-h"]) == 0
        assert capsys.readouterr().out.startswith("Uso: enlace")


def test_the_summary_of_each_command_fits_in_its_line(capsys: pytest.CaptureFixture[str]) -> None:
    for command in ([], ["config"]):
        main([*command, "--help"])
        assert "..." not in capsys.readouterr().out


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--version"]) == 0
    assert capsys.readouterr().out == f"enlace, versión {__version__}\n"


@pytest.mark.parametrize(
    ("arguments", "what", "where"),
    [
        (["trian"], "No existe la orden «trian». ¿Querías decir «train»?", "enlace"),
        (
            ["config", "chek"],
            "No existe la orden «chek». ¿Querías decir una de estas: «check», «schema»?",
            "enlace config",
        ),
        (["train"], "Falta el argumento «CORRIDA».", "enlace train"),
        (["train", "x", "--estimat"], "No existe la opción «--estimat». ¿Querías decir «--estimate»?", "enlace train"),
        (["train", "x", "--resume"], "La opción «--resume» necesita un valor.", "enlace train"),
        (["config", "check", "sobra"], "Sobra un argumento: sobra", "enlace config check"),
        (
            ["generate", "x", "--top-p", "2"],
            "Valor no válido para «--top-p»: 2.0 está fuera del intervalo",
            "enlace generate",
        ),
        (
            ["generate", "x", "--seed", "uno"],
            "Valor no válido para «--seed»: «uno» no es un número válido.",
            "enlace generate",
        ),
        (
            ["completion", "csh"],
            "Valor no válido para «{bash|zsh|fish}»: «csh» no es ninguno de estos",
            "enlace completion",
        ),
    ],
)
def test_a_badly_written_command_gets_four_lines_and_code_2(
    arguments: list[str], what: str, where: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(arguments) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    lines = captured.err.splitlines()
    assert lines[0].startswith(f"error: {what}")
    assert lines[1] == f"dónde: {where}"
    assert lines[2].startswith(f"por qué: Uso: {where}")
    assert lines[-1] == f"pista: mira la ayuda con: {where} --help"


def test_an_error_shows_its_traceback_only_with_debug_anywhere(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["config", "show", "no-existe"]) == 5
    assert "Traceback" not in capsys.readouterr().err
    for arguments in (["--debug", "config", "show", "no-existe"], ["config", "show", "no-existe", "--debug"]):
        assert main(arguments) == 5
        assert "Traceback" in capsys.readouterr().err


@pytest.mark.parametrize("encoding", ["latin-1", "cp1252"])
def test_a_terminal_without_utf8_still_gets_the_help(encoding: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", "from enlace.cli import main; raise SystemExit(main(['--help']))"],
        capture_output=True,
        env={**os.environ, "PYTHONIOENCODING": encoding, "PYTHONUTF8": "0"},
        check=True,
    )
    assert done.stdout.decode(encoding).startswith("Uso: enlace")
    assert done.stderr == b""


def test_a_closed_pipe_is_not_an_error() -> None:
    program = Path(sys.executable).with_name("enlace")
    done = subprocess.run(["bash", "-c", '"$0" --help | true', program], capture_output=True, text=True, check=True)
    assert done.stderr == ""


def test_the_installed_program_is_this_one() -> None:
    program = Path(sys.executable).with_name("enlace")
    done = subprocess.run([program, "--version"], capture_output=True, text=True, check=True)
    assert done.stdout == f"enlace, versión {__version__}\n"
