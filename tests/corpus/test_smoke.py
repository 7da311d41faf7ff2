"""El constructor del corpus de humo, y el guion que lo llama, de principio a fin y sin red."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from enlace.corpus.smoke import ORIGINS, build, describe
from enlace.data import read_documents
from enlace.durable import verify
from enlace.errors import EnlaceError, RefusedError
from tests.corpus.ztext import write_module

ROOT = Path(__file__).parents[2]
OFFLINE = {"https_proxy": "http://127.0.0.1:9", "HTTPS_PROXY": "http://127.0.0.1:9"}


def write_texts(folder: Path, word: str = "Hola") -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    for number in range(3):
        (folder / f"{number}.txt").write_text(f"{word}, número {number}.", encoding="utf-8")
    return folder


def test_the_corpus_says_where_every_byte_comes_from(tmp_path: Path) -> None:
    target = tmp_path / "salida"
    manifest = build(ORIGINS["carpeta"], write_texts(tmp_path / "mis textos"), target, replace=False)
    assert verify(target, "documents") == manifest
    texts = [document.text for document in read_documents(target)]
    assert texts == ["Hola, número 0.", "Hola, número 1.", "Hola, número 2."]
    assert manifest.info["text_bytes"] == len("".join(texts).encode())
    originals = json.loads(json.dumps(manifest.info["originals"]))
    assert [original["name"] for original in originals] == ["0.txt", "1.txt", "2.txt"]
    assert len(originals[0]["sha256"]) == 64
    assert "3 documentos" in describe(manifest)


def test_replacing_waits_until_the_new_text_is_read(tmp_path: Path) -> None:
    target, empty = tmp_path / "salida", tmp_path / "poco"
    build(ORIGINS["carpeta"], write_texts(tmp_path / "a"), target, replace=False)
    empty.mkdir()
    (empty / "un.txt").write_text("Solo uno.", encoding="utf-8")
    with pytest.raises(EnlaceError, match="poco texto"):
        build(ORIGINS["carpeta"], empty, target, replace=True)
    assert len(list(read_documents(target))) == 3
    build(ORIGINS["carpeta"], write_texts(tmp_path / "b", "Adiós"), target, replace=True)
    assert next(read_documents(target)).text == "Adiós, número 0."


def test_a_folder_that_is_not_ours_is_never_deleted(tmp_path: Path) -> None:
    mine = write_texts(tmp_path / "salida")
    with pytest.raises(RefusedError):
        build(ORIGINS["carpeta"], write_texts(tmp_path / "a"), mine, replace=True)
    assert len(list(mine.iterdir())) == 3


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    """Una copia del proyecto en una ruta con espacios y acentos, con el entorno de esta prueba."""
    folder = tmp_path / "mi año nuevo"
    (folder / "scripts").mkdir(parents=True)
    shutil.copy(ROOT / "scripts" / "prepare_smoke_data.sh", folder / "scripts")
    (folder / "enlace").symlink_to(ROOT / "enlace")
    (folder / ".venv").symlink_to(sys.prefix)
    (folder / "tmp").mkdir()
    return folder


def environment(clone: Path, path: str = "") -> dict[str, str]:
    """Sin red, con sus temporales en la copia y, si se da, `path` por delante en el PATH."""
    return {**os.environ, **OFFLINE, "TMPDIR": str(clone / "tmp"), "PATH": f"{path}{os.pathsep}{os.environ['PATH']}"}


def prepare(clone: Path, *arguments: str, cwd: Path | None = None, path: str = "") -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [clone / "scripts" / "prepare_smoke_data.sh", *arguments],
        cwd=cwd or clone,
        env=environment(clone, path),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )


def write_program(folder: Path, name: str, body: str) -> None:
    folder.mkdir(exist_ok=True)
    (folder / name).write_text(f"#!/bin/sh\n{body}\n")
    (folder / name).chmod(0o755)


def fake_debian(clone: Path, download: str) -> str:
    """Un apt de mentira, sin red, que solo conoce sword-text-sparv: devuelve la carpeta para el PATH."""
    programs = clone / "programas"
    write_program(programs, "apt-cache", 'case "$*" in *sword-text-sparv) echo "Size: 1500000" ;; *) exit 1 ;; esac')
    write_program(programs, "apt-get", f'case "$*" in *download*) {download} ;; *) exit 100 ;; esac')
    return str(programs)


def test_the_script_publishes_a_local_folder_and_then_does_nothing(clone: Path) -> None:
    write_texts(clone.parent / "fuera" / "textos")
    first = prepare(clone, "textos", cwd=clone.parent / "fuera")
    assert first.returncode == 0, first.stderr
    manifest = verify(clone / "data" / "smoke")
    again = prepare(clone)
    assert again.returncode == 0
    assert "ya está" in again.stderr
    assert verify(clone / "data" / "smoke") == manifest
    assert list((clone / "tmp").iterdir()) == []


def test_the_folder_that_is_given_replaces_what_was_there(clone: Path) -> None:
    assert prepare(clone, str(write_texts(clone / "unos textos"))).returncode == 0
    done = prepare(clone, str(write_texts(clone / "otros textos", "Otra cosa")))
    assert done.returncode == 0, done.stderr
    assert "ya está" not in done.stderr
    assert next(read_documents(clone / "data" / "smoke")).text.startswith("Otra cosa")
    assert prepare(clone, "no-existe").returncode == 5
    assert next(read_documents(clone / "data" / "smoke")).text.startswith("Otra cosa")


@pytest.mark.skipif(shutil.which("dpkg-deb") is None, reason="hace falta dpkg-deb para construir el paquete")
def test_the_script_falls_back_to_a_debian_package_and_says_why(clone: Path) -> None:
    package = clone / "paquete"
    write_module(package / "usr" / "share" / "sword")
    (package / "DEBIAN").mkdir()
    (package / "DEBIAN" / "control").write_text(
        "Package: prueba\nVersion: 1\nArchitecture: all\nMaintainer: nadie\nDescription: prueba\n"
    )
    subprocess.run(["dpkg-deb", "-b", package, clone / "prueba.deb"], check=True, capture_output=True)
    done = prepare(clone, path=fake_debian(clone, f"cp '{clone}/prueba.deb' ."))
    assert done.returncode == 0, done.stderr
    assert "no se usa Project Gutenberg: no se llega" in done.stderr
    assert "sword-text-sparv: descarga 1,5 MB" in done.stderr
    manifest = verify(clone / "data" / "smoke", "documents")
    assert manifest.info["origin"] == "paquete de Debian sword-text-sparv"
    assert json.loads(json.dumps(manifest.info["originals"]))[0]["name"] == "prueba.deb"
    assert list((clone / "tmp").iterdir()) == []


def test_without_any_origin_the_script_lists_why_and_what_to_do(clone: Path) -> None:
    done = prepare(clone, path=fake_debian(clone, "echo 'E: servidor caído' >&2; exit 100"))
    assert done.returncode == 5
    assert "Project Gutenberg: no se llega" in done.stderr
    assert "sword-text-sparv: E: servidor caído" in done.stderr
    assert "libreoffice-help-es: apt no lo conoce" in done.stderr
    assert "pista: da una carpeta" in done.stderr
    assert not (clone / "data").exists()


def test_a_killed_script_leaves_nothing_behind(clone: Path) -> None:
    path = fake_debian(clone, f"touch '{clone}/empezado'; sleep 60")
    process = subprocess.Popen(
        [clone / "scripts" / "prepare_smoke_data.sh"],
        cwd=clone,
        env=environment(clone, path),
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    deadline = time.monotonic() + 30
    while not (clone / "empezado").exists() and time.monotonic() < deadline:
        time.sleep(0.02)
    os.killpg(process.pid, signal.SIGTERM)
    assert process.wait(timeout=30) != 0
    assert not (clone / "data").exists()
    assert list((clone / "tmp").iterdir()) == []


def test_a_damaged_corpus_is_named_with_the_order_that_repairs_it(clone: Path) -> None:
    texts = write_texts(clone / "textos")
    assert prepare(clone, str(texts)).returncode == 0
    file = clone / "data" / "smoke" / "documents.jsonl.zst"
    file.write_bytes(file.read_bytes()[:-1])
    done = prepare(clone)
    assert done.returncode == 7
    assert "documents.jsonl.zst" in done.stderr
    assert "--rehacer" in done.stderr
    assert prepare(clone, "--rehacer", str(texts)).returncode == 0
    verify(clone / "data" / "smoke")


@pytest.mark.parametrize(
    ("arguments", "code"), [(["--reacer"], 2), (["a", "b"], 2), (["no-existe"], 5), (["--ayuda"], 0)]
)
def test_a_wrong_order_says_so_in_spanish(clone: Path, arguments: list[str], code: int) -> None:
    done = prepare(clone, *arguments)
    assert done.returncode == code
    assert "pista:" in done.stderr or "CARPETA" in done.stdout


def test_the_module_form_speaks_spanish_too() -> None:
    done = subprocess.run([sys.executable, "-m", "enlace.corpus.smoke", "nada"], capture_output=True, text=True)
    assert done.returncode == 2
    assert done.stderr.startswith("uso: python -m enlace.corpus.smoke")
    assert "invalid" not in done.stderr
