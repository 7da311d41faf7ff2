"""Cada dependencia directa está justificada en docs/dependencias.md y fijada, exacta, en constraints.txt."""

import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
DOCUMENT = (ROOT / "docs" / "dependencias.md").read_text()
PIN = re.compile(r"([a-z0-9][a-z0-9-]*)==([0-9][0-9a-z.]*)")
MOST_IN_BASE = 10


def name_of(requirement: str) -> str:
    found = re.match(r"[\w-]+", requirement)
    assert found
    return found[0]


GROUPS = {
    "Base": [name_of(requirement) for requirement in PROJECT["project"]["dependencies"]],
    **{
        f"Extra `{extra}`": [name_of(requirement) for requirement in requirements]
        for extra, requirements in PROJECT["project"]["optional-dependencies"].items()
    },
}


def justified_in(section: str) -> list[str]:
    """Los paquetes de la primera columna de la tabla de ese apartado."""
    (body,) = [part for part in DOCUMENT.split("\n## ") if part.startswith(section)]
    rows = [line for line in body.splitlines() if line.startswith("| `")]
    return [name for row in rows for name in re.findall(r"`([\w-]+)`", row.split("|")[1])]


def pins() -> dict[str, str]:
    lines = [line for line in (ROOT / "constraints.txt").read_text().splitlines() if line and not line.startswith("#")]
    found = [PIN.fullmatch(line) for line in lines]
    assert all(found), [line for line, pin in zip(lines, found, strict=True) if not pin]
    return {pin[1]: pin[2] for pin in found if pin}


@pytest.mark.parametrize("section", GROUPS)
def test_the_document_justifies_exactly_the_dependencies_there_are(section: str) -> None:
    assert sorted(justified_in(section)) == sorted(GROUPS[section])


def test_what_builds_the_package_is_named_too() -> None:
    assert all(f"`{name_of(requirement)}`" in DOCUMENT for requirement in PROJECT["build-system"]["requires"])


def test_every_direct_dependency_is_pinned_exactly() -> None:
    direct = {name for names in GROUPS.values() for name in names}
    assert direct <= pins().keys()


def test_nothing_is_pinned_twice_nor_loosely() -> None:
    text = (ROOT / "constraints.txt").read_text()
    assert len(re.findall("==", text)) == len(pins())


def test_the_installer_asks_for_the_pinned_torch() -> None:
    script = (ROOT / "scripts" / "setup.sh").read_text()
    assert f"\ntorch_version={pins()['torch']}\n" in script


def test_the_base_stays_short() -> None:
    assert len(GROUPS["Base"]) <= MOST_IN_BASE
