"""Bajar textos: entero y comprobado o nada; lo que se corta sigue donde estaba."""

import hashlib
import json
from http.server import BaseHTTPRequestHandler
from pathlib import Path

import pytest

from enlace.cli import main
from enlace.cli.fetch import address
from tests.agent.server import Received, Sent, Server, serving

ROOT = Path(__file__).parents[2]
CONTENT = b"".join(f"Texto de prueba {n}.\n".encode() for n in range(5000))


@pytest.fixture(autouse=True)
def at_the_root(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)


def fetch(target: Path, url: str, **more: str) -> int:
    source = {"name": "a", "path": str(target), "license": "CC0", "quality": "prosa", "spanish": True, "weight": 1.0}
    return main(["corpus", "fetch", "es", f"sources={json.dumps([{**source, 'url': url, **more}])}"])


def ranged(request: Received, handler: BaseHTTPRequestHandler) -> None:
    start = int(request.headers.get("range", "bytes=0-")[6:].split("-")[0])
    handler.send_response(206 if start else 200)
    handler.send_header("Content-Length", str(len(CONTENT) - start))
    handler.send_header("Content-Range", f"bytes {start}-{len(CONTENT) - 1}/{len(CONTENT)}")
    handler.end_headers()
    handler.wfile.write(CONTENT[start:])


def cut(_request: Received, handler: BaseHTTPRequestHandler) -> None:
    handler.send_response(200)
    handler.send_header("Content-Length", str(len(CONTENT)))
    handler.end_headers()
    handler.wfile.write(CONTENT[:30_000])


def test_it_comes_whole_and_is_not_fetched_twice(tmp_path: Path) -> None:
    target = tmp_path / "nueva" / "a.txt"
    digest = hashlib.sha256(CONTENT).hexdigest()
    with serving({"/a.txt": Sent(CONTENT)}) as server:
        assert fetch(target, f"{server.origin}/a.txt", sha256=digest) == 0
        assert fetch(target, f"{server.origin}/a.txt", sha256=digest) == 0
    assert (target.read_bytes(), len(server.received)) == (CONTENT, 1)
    assert not target.with_name("a.txt.part").exists()


def test_what_is_cut_goes_on_where_it_was(tmp_path: Path) -> None:
    target = tmp_path / "a.txt"
    with serving({"/a.txt": cut}) as server:
        assert fetch(target, f"{server.origin}/a.txt") == 1
        assert not target.exists() and target.with_name("a.txt.part").stat().st_size == 30_000
        server.routes["/a.txt"] = ranged
        assert fetch(target, f"{server.origin}/a.txt") == 0
    assert target.read_bytes() == CONTENT
    assert server.received[-1].headers["range"] == "bytes=30000-"


def test_what_is_not_what_was_expected_is_thrown_away(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    target = tmp_path / "a.txt"
    with serving({"/a.txt": Sent(CONTENT)}) as server:
        assert fetch(target, f"{server.origin}/a.txt", sha256="0" * 64) == 7
    assert list(tmp_path.iterdir()) == [] and "no es lo que se esperaba" in capsys.readouterr().err


def test_without_network_nothing_is_half_written(tmp_path: Path) -> None:
    server: Server
    with serving({}) as server:
        pass
    assert fetch(tmp_path / "a.txt", f"{server.origin}/a.txt") == 1
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("url", ["file:///etc/passwd", "--output=x"])
def test_only_the_web_is_fetched(tmp_path: Path, url: str) -> None:
    assert fetch(tmp_path / "a.txt", url) == 1
    assert list(tmp_path.iterdir()) == []


def test_a_dataset_of_the_hub_is_named_by_its_identifier() -> None:
    found = address("hub:HuggingFaceFW/fineweb-2/data/spa_Latn/train/000.parquet")
    assert (
        found == "https://huggingface.co/datasets/HuggingFaceFW/fineweb-2/resolve/main/data/spa_Latn/train/000.parquet"
    )
    assert address("https://a.example/x") == "https://a.example/x"


def test_a_corpus_with_nothing_to_fetch_says_so() -> None:
    assert main(["corpus", "fetch", "es"]) == 5
