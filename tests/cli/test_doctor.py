"""`enlace doctor`: cada línea dice si está bien y, si no, qué hacer; sale con 3 si algo impide trabajar."""

import json
import sys
from pathlib import Path

import pytest

from enlace.cli import main
from enlace.cli.doctor import _fsync, _line
from enlace.train.check import Check


def test_says_what_it_has_looked_at(capsys: pytest.CaptureFixture[str]) -> None:
    code = main(["doctor"])
    lines = capsys.readouterr().out.splitlines()
    assert code in (0, 3)
    checked = {line[2:].split(":")[0] for line in lines if line[0] in "✓✗"}
    assert {"Python", "disco", "escritura segura", "memoria", "UTF-8", "tmux"} < checked
    assert all(line[0] in "✓✗" or line.startswith("  pista: ") for line in lines)


def test_json_has_one_object_per_check_and_the_same_exit_code(capsys: pytest.CaptureFixture[str]) -> None:
    code = main(["doctor", "--json"])
    checks = json.loads(capsys.readouterr().out)
    assert all(set(check) == {"name", "ok", "detail", "hint", "fatal"} for check in checks)
    assert code == (3 if any(check["fatal"] and not check["ok"] for check in checks) else 0)


def test_a_torch_that_cannot_be_imported_is_reported_not_raised(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "enlace.train.backends", None)
    assert main(["doctor"]) == 3
    captured = capsys.readouterr()
    assert "✗ torch: no se puede importar" in captured.out
    assert "  pista: scripts/setup.sh" in captured.out
    assert captured.err.startswith("error: esta máquina no está lista: torch")


def test_a_folder_where_nothing_can_be_written_is_fatal(tmp_path: Path) -> None:
    check = _fsync(tmp_path / "no-existe")
    assert (check.ok, check.fatal) == (False, True)


def test_checking_the_disk_leaves_nothing_behind(tmp_path: Path) -> None:
    assert _fsync(tmp_path).detail.startswith("fsync en ")
    assert list(tmp_path.iterdir()) == []


def test_the_hint_appears_only_when_something_is_wrong() -> None:
    assert _line(Check("disco", True, "9 GiB", "libera espacio")) == "✓ disco: 9 GiB"
    assert _line(Check("disco", False, "1 GiB", "libera espacio")) == "✗ disco: 1 GiB\n  pista: libera espacio"
