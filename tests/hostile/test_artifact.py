"""Carpetas de un desconocido: un manifiesto en regla no basta para salirse de ellas, bloquearse o agotar la memoria."""

import hashlib
import json
import os
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from enlace.durable import AppendLog, publish, read_json, read_log, verify
from enlace.durable.canonical import MAX_BYTES
from enlace.errors import CorruptDataError, EnlaceError
from tests.hostile.targets import signed

SHA = hashlib.sha256(b"uno").hexdigest()
ENTRY = {"bytes": 3, "sha256": SHA}
NAMES = ["../x", "..", ".", "", "/etc/passwd", "a/b", "a\\b", "..\\x", "C:x", "a\0b", "x\n", "ñ", "x\u0301", ".x"]
NAMES += ["\u202ex", "manifest.json", "x" * 300]
NOT_STRICT = [
    b"",
    b"\xef\xbb\xbf{}",
    b"\0{}",
    b"{}\0",
    b"[NaN]",
    b"[Infinity]",
    b"[1e999]",
    b"9" * 5000,
    b"-" + b"9" * 9999,
]
NOT_STRICT += [
    b'{"a":1,"a":2}',
    b'"\\ud800"',
    b'"\\udc00\\ud800"',
    b"'a'",
    b"{a:1}",
    b"[1,]",
    b"01",
    b"+1",
    b"\xff",
    b"{}{}",
]


def forged(path: Path, **changes: Any) -> Path:
    """Una carpeta con `x` y un manifiesto firmado con esos cambios."""
    publish(path, {"x": b"uno"}, kind="k", info={"step": 1})
    body = json.loads((path / "manifest.json").read_bytes()) | changes
    body.pop("sha256")
    (path / "manifest.json").write_bytes(signed(body))
    return path


def rejection(path: Path) -> CorruptDataError:
    with pytest.raises(CorruptDataError) as caught:
        verify(path, "k")
    return caught.value


def test_the_forger_knows_how_to_sign(tmp_path: Path) -> None:
    assert verify(forged(tmp_path / "a"), "k").info == {"step": 1}


@pytest.mark.parametrize(
    "changes",
    [
        {"files": []},
        {"files": None},
        {"files": {"x": 3}},
        {"files": {"x": {}}},
        {"files": {"x": ENTRY | {"otra": 1}}},
        *({"files": {"x": ENTRY | {"bytes": size}}} for size in (-1, True, 3.0, "3", None, 10**30)),
        *({"files": {"x": ENTRY | {"sha256": digest}}} for digest in (SHA[:-1], SHA + "0", SHA.upper(), "", None, 3)),
        {"kind": ["k"]},
        {"kind": None},
        {"parents": []},
        {"parents": {"datos": 3}},
        {"info": []},
        {"info": None},
        {"created": 3},
        {"code_version": None},
        {"format": 2},
        {"format": "1"},
        {"otra": 1},
    ],
    ids=str,
)
def test_a_signed_manifest_of_wrong_types_is_corrupt(changes: dict[str, Any], tmp_path: Path) -> None:
    assert Path(rejection(forged(tmp_path / "a", **changes)).where).parent == tmp_path / "a"


@pytest.mark.parametrize("name", NAMES)
def test_no_signed_name_leaves_the_folder(name: str, tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(b"uno")
    path = forged(tmp_path / "a", files={"x": ENTRY, name: ENTRY})
    assert rejection(path).where == str(path / "manifest.json")


def test_names_that_only_differ_by_case_are_two_files(tmp_path: Path) -> None:
    path = forged(tmp_path / "a", files={"x": ENTRY, "X": ENTRY})
    assert rejection(path).where == str(path / "X")
    (path / "X").write_bytes(b"uno")
    assert verify(path, "k")


def socket_at(path: Path) -> None:
    # Los sockets tienen la ruta corta: se crea desde su carpeta.
    here = Path.cwd()
    os.chdir(path.parent)
    try:
        with socket.socket(socket.AF_UNIX) as server:
            server.bind(path.name)
    finally:
        os.chdir(here)


STRANGE: dict[str, Callable[[Path], object]] = {
    "pipe": os.mkfifo,
    "folder": Path.mkdir,
    "socket": socket_at,
    "endless device": lambda path: path.symlink_to("/dev/zero"),
    "link to itself": lambda path: path.symlink_to(path),
    "link to nothing": lambda path: path.symlink_to("nada"),
    "link outside": lambda path: path.symlink_to("/etc/passwd"),
    "link to the same bytes": lambda path: path.symlink_to(path.parent.parent / "igual"),
}


@pytest.mark.timeout(20)
@pytest.mark.parametrize("name", ["x", "manifest.json"])
@pytest.mark.parametrize("make", STRANGE.values(), ids=STRANGE.keys())
def test_what_is_not_a_plain_file_is_refused_without_blocking(
    name: str, make: Callable[[Path], object], tmp_path: Path
) -> None:
    path = forged(tmp_path / "a")
    (path / name).rename(tmp_path / "igual")
    make(path / name)
    error = rejection(path)
    assert error.where == str(path / name) and "fichero normal" in error.what


@pytest.mark.timeout(20)
@pytest.mark.parametrize("make", STRANGE.values(), ids=STRANGE.keys())
@pytest.mark.parametrize("door", [read_json, read_log, AppendLog])
def test_a_log_or_a_json_that_is_not_a_plain_file_is_refused_without_blocking(
    door: Callable[[Path], object], make: Callable[[Path], object], tmp_path: Path
) -> None:
    path = tmp_path / "a" / "log.jsonl"
    path.parent.mkdir()
    (tmp_path / "igual").write_bytes(b'{"step":1}\n{"media')
    make(path)
    with pytest.raises(CorruptDataError, match="no es un fichero normal"):
        door(path)
    assert (tmp_path / "igual").read_bytes() == b'{"step":1}\n{"media'


def test_a_log_line_without_end_is_not_read_whole(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    path.write_bytes(b'{"step":1}\n')
    with path.open("ab") as file:
        file.truncate(1 << 33)  # sin ocupar disco
    with pytest.raises(CorruptDataError, match="demasiado larga") as caught:
        read_log(path)
    assert caught.value.where == f"{path}:2"


@pytest.mark.parametrize("make", [Path.touch, os.mkfifo, Path.mkdir], ids=["file", "pipe", "folder"])
def test_extra_things_are_named(make: Callable[[Path], object], tmp_path: Path) -> None:
    path = forged(tmp_path / "a")
    make(path / "otro")
    assert rejection(path).where == str(path / "otro")


@pytest.mark.skipif(os.getuid() == 0, reason="root lo lee todo: hace falta un usuario normal")
def test_an_unreadable_file_says_so(tmp_path: Path) -> None:
    path = forged(tmp_path / "a")
    (path / "x").chmod(0)
    with pytest.raises(EnlaceError, match="permiso"):
        verify(path, "k")


def test_a_folder_with_names_that_are_not_text_is_refused(tmp_path: Path) -> None:
    path = forged(tmp_path / "a")
    Path(os.fsdecode(os.fsencode(path) + b"/\xff\x1b[31m")).touch()
    assert "sobra" in rejection(path).why


@pytest.mark.parametrize("name", ["manifest.json", "otro.json"])
def test_an_enormous_json_is_not_read_whole(name: str, tmp_path: Path) -> None:
    path = forged(tmp_path / "a") / name
    with path.open("wb") as file:
        file.truncate(1 << 40)  # sin ocupar disco
    with pytest.raises(CorruptDataError) as caught:
        verify(path.parent) if name == "manifest.json" else read_json(path)
    assert caught.value.where == str(path) and str(MAX_BYTES) in caught.value.why


@pytest.mark.parametrize("depth", [100, 900, *range(960, 1000, 3), 5_000, 1_000_000])
def test_nesting_never_becomes_a_recursion_error(depth: int, tmp_path: Path) -> None:
    for opening, closing in ((b"[", b"]"), (b'{"a":', b"}")):
        path = tmp_path / "manifest.json"
        path.write_bytes(b'{"info":' + opening * depth + b"1" + closing * depth + b"}")
        with pytest.raises(CorruptDataError):
            verify(tmp_path)


@pytest.mark.parametrize("text", NOT_STRICT)
def test_json_that_is_not_strict_is_refused_in_spanish(text: bytes, tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    path.write_bytes(text)
    with pytest.raises(CorruptDataError) as caught:
        read_json(path)
    assert caught.value.why and "limit" not in caught.value.why
