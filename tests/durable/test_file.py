"""El fichero suelto, borrar y barrer."""

import subprocess
import sys
from pathlib import Path

import pytest

from enlace.durable import publish, remove, sweep, write_file
from enlace.errors import EnlaceError, NotFoundError


def test_write_creates_folders_and_replaces_whole(tmp_path: Path) -> None:
    path = tmp_path / "a" / "b" / "config.yaml"
    write_file(path, b"una version larga")
    write_file(path, [b"o", memoryview(b"tra")])
    assert path.read_bytes() == b"otra"
    assert list(path.parent.iterdir()) == [path]


def test_views_of_any_shape_are_written_as_bytes(tmp_path: Path) -> None:
    grid = memoryview(bytes(range(12))).cast("H", (2, 3))
    write_file(tmp_path / "x", [grid, memoryview(b"")])
    assert (tmp_path / "x").read_bytes() == bytes(range(12))


def test_content_that_fails_keeps_the_previous(tmp_path: Path) -> None:
    path = tmp_path / "config.yaml"
    write_file(path, b"antes")
    with pytest.raises(ZeroDivisionError):
        write_file(path, (bytes([1 // n]) for n in (1, 0)))
    assert path.read_bytes() == b"antes"
    assert list(tmp_path.iterdir()) == [path]


def test_path_through_a_file_is_explained(tmp_path: Path) -> None:
    write_file(tmp_path / "fichero", b"")
    with pytest.raises(EnlaceError) as caught:
        write_file(tmp_path / "fichero" / "dentro" / "x", b"")
    assert "no es una carpeta" in caught.value.why


def test_remove_takes_files_folders_and_links_but_not_their_targets(tmp_path: Path) -> None:
    write_file(tmp_path / "fuera" / "x", b"intacto")
    write_file(tmp_path / "carpeta" / "sub" / "x", b"")
    (tmp_path / "carpeta" / "enlace").symlink_to(tmp_path / "fuera")
    (tmp_path / "enlace").symlink_to(tmp_path / "fuera")
    for name in ("carpeta", "enlace"):
        remove(tmp_path / name)
    assert [place.name for place in tmp_path.iterdir()] == ["fuera"]
    remove(tmp_path / "fuera" / "x")
    assert list((tmp_path / "fuera").iterdir()) == []


def test_removing_nothing_is_not_found(tmp_path: Path) -> None:
    with pytest.raises(NotFoundError):
        remove(tmp_path / "nada")


def test_sweep_takes_only_leftovers_of_dead_processes(tmp_path: Path) -> None:
    script = "import os; print(os.getpid())"
    dead = int(subprocess.run([sys.executable, "-c", script], capture_output=True, check=True).stdout)
    names = [f".tmp-step-1-{dead}-0123abcd-0", f".del-step-2-{dead}-0123abcd-7"]
    for name in [*names, ".tmp-mio", ".delicado"]:
        write_file(tmp_path / name / "x", b"")
    write_file(tmp_path / f".tmp-config.yaml-{dead}-0123abcd-3", b"")
    publish(tmp_path / "step-1", {}, kind="k")
    assert {path.name for path in sweep(tmp_path)} == {*names, f".tmp-config.yaml-{dead}-0123abcd-3"}
    assert {path.name for path in tmp_path.iterdir()} == {".tmp-mio", ".delicado", "step-1"}


def test_sweeping_a_folder_that_does_not_exist_does_nothing(tmp_path: Path) -> None:
    assert sweep(tmp_path / "nada") == []
