"""Lo que click y argparse escriben por su cuenta sale en español, entero."""

import argparse
import ast
import gettext
import io
import re
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
from babel.messages.catalog import Catalog
from babel.messages.mofile import write_mo
from babel.messages.pofile import read_po

import enlace.errors
from enlace.cli import main
from enlace.cli.app import app
from enlace.errors.spanish import speak_spanish

LOCALE = Path(enlace.errors.__file__).parent / "locale" / "es" / "LC_MESSAGES"
LIBRARIES = [*Path(click.__file__).parent.glob("*.py"), Path(argparse.__file__)]
# Llegan a gettext en una variable, así que no se ven en el código.
INDIRECT = {"required", "subcommands"}
PLACEHOLDER = re.compile(r"\{(\w+)[^}]*\}|%\((\w+)\)|%[sr]")


def message_ids(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in ("_", "ngettext"):
            wanted = node.args[: 2 if node.func.id == "ngettext" else 1]
            yield from (str(each.value) for each in wanted if isinstance(each, ast.Constant))


def read_catalog() -> Catalog:
    with (LOCALE / "enlace.po").open("rb") as file:
        return read_po(file, locale="es", domain="enlace")


def pairs() -> Iterator[tuple[str, str]]:
    for message in read_catalog():
        if message.id:
            yield from zip(forms(message.id), forms(message.string), strict=True)


def forms(text: object) -> tuple[str, ...]:
    """Singular y plural, o la única forma que hay."""
    return tuple(str(form) for form in text) if isinstance(text, list | tuple) else (str(text),)


def commands(group: click.Group = app, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    yield path
    for name, command in group.commands.items():
        if isinstance(command, click.Group):
            yield from commands(command, (*path, name))
        else:
            yield (*path, name)


def test_every_message_of_click_and_argparse_is_translated() -> None:
    found = {message for path in LIBRARIES for message in message_ids(path)} | INDIRECT
    translated = {original for original, spanish in pairs() if spanish}
    assert len(found) > 90
    assert found - translated == set()


@pytest.mark.parametrize(("original", "spanish"), sorted(pairs()))
def test_a_translation_never_asks_for_a_value_that_the_library_does_not_give(original: str, spanish: str) -> None:
    assert {m.groups() for m in PLACEHOLDER.finditer(spanish)} <= {m.groups() for m in PLACEHOLDER.finditer(original)}


def test_percent_placeholders_keep_number_and_order() -> None:
    for original, spanish in pairs():
        assert re.findall(r"(?<!%)%[sr]", original) == re.findall(r"(?<!%)%[sr]", spanish)


def test_the_compiled_catalog_is_the_written_one() -> None:
    compiled = io.BytesIO()
    write_mo(compiled, read_catalog())
    compiled.seek(0)
    with (LOCALE / "enlace.mo").open("rb") as file:
        committed = gettext.GNUTranslations(file)._catalog  # type: ignore[attr-defined]
    assert committed == gettext.GNUTranslations(compiled)._catalog, "recompila: lo dice la cabecera de enlace.po"  # type: ignore[attr-defined]


@pytest.mark.parametrize("path", list(commands()))
def test_help_has_no_english(path: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*path, "--help"]) == 0
    text = capsys.readouterr().out
    assert text.startswith("Uso: enlace")
    english = r"\b(Usage|Options|Commands|Show|ARGS|COMMAND|OPTIONS|TEXT|INTEGER|FLOAT|RANGE|PATH|the|and|default)\b"
    assert re.findall(english, text) == []


@pytest.mark.parametrize("language", ["en_US.UTF-8", "C", "fr_FR.UTF-8", ""])
def test_the_language_of_the_terminal_does_not_matter(language: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for variable in ("LANGUAGE", "LC_ALL", "LANG"):
        monkeypatch.setenv(variable, language)
    speak_spanish()
    assert gettext.gettext("Options") == "Opciones"
    parser = argparse.ArgumentParser(prog="enlace", add_help=False)
    parser.add_argument("run")
    assert parser.format_usage() == "uso: enlace run\n"
