"""Artefactos: enteros o nada, y cualquier cambio se detecta y se nombra."""

import tempfile
import threading
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from enlace.durable import latest, publish, sweep, to_json, verify
from enlace.durable.manifest import encode_manifest
from enlace.errors import CorruptDataError, EnlaceError, NotFoundError, ResourceError

FILES = {"model.bin": b"pesos" * 20, "state.json": b'{"step":1}', "vacio.txt": b""}
NAMES = [*FILES, "manifest.json"]


def _published(folder: Path) -> Path:
    publish(folder / "step-1", FILES, kind="checkpoint", parents={"datos": "0" * 64}, info={"loss": 2.5, "año": [1]})
    return folder / "step-1"


def test_published_artifact_verifies_with_everything_it_was_given(tmp_path: Path) -> None:
    path = tmp_path / "nueva" / "step-1"
    manifest = publish(path, FILES, kind="checkpoint", parents={"datos": "0" * 64}, info={"loss": 2.5})
    assert verify(path, "checkpoint") == manifest
    assert {name: (path / name).read_bytes() for name in FILES} == FILES
    assert manifest.parents == {"datos": "0" * 64} and manifest.info == {"loss": 2.5}
    assert manifest.files["model.bin"].bytes == 100


@given(st.lists(st.binary(max_size=50), max_size=6))
@settings(max_examples=25)
def test_streamed_content_equals_whole_content(pieces: list[bytes]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        streamed = publish(Path(folder) / "a-1", {"x": (memoryview(piece) for piece in pieces)}, kind="k")
        whole = publish(Path(folder) / "a-2", {"x": b"".join(pieces)}, kind="k")
        assert streamed.files == whole.files
        assert verify(Path(folder) / "a-1").files == streamed.files


def test_streamed_content_is_written_before_the_next_piece_is_asked_for(tmp_path: Path) -> None:
    sizes = []

    def pieces() -> Iterator[memoryview]:
        for _ in range(4):
            yield memoryview(bytearray(1000))
            sizes.append(sum(place.stat().st_size for place in tmp_path.glob(".tmp-*/*")))

    publish(tmp_path / "step-1", {"x": pieces()}, kind="k")
    assert sizes == [1000, 2000, 3000, 4000]


@given(st.data())
@settings(max_examples=150)
def test_any_changed_byte_is_detected_and_the_file_named(data: st.DataObject) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = _published(Path(folder))
        victim = path / data.draw(st.sampled_from(NAMES))
        content = victim.read_bytes()
        changes = [content + data.draw(st.binary(min_size=1, max_size=5))]
        if content:
            at = data.draw(st.integers(0, len(content) - 1))
            flipped = content[at] ^ data.draw(st.integers(1, 255))
            changes += [content[:at], content[:at] + bytes([flipped]) + content[at + 1 :]]
        victim.write_bytes(data.draw(st.sampled_from(changes)))
        with pytest.raises(CorruptDataError) as caught:
            verify(path)
        assert caught.value.where == str(victim)


@pytest.mark.parametrize("name", NAMES)
def test_missing_file_is_named(tmp_path: Path, name: str) -> None:
    path = _published(tmp_path)
    (path / name).unlink()
    with pytest.raises(CorruptDataError) as caught:
        verify(path)
    assert caught.value.where == str(path / name) and "falta" in caught.value.why


def test_extra_file_is_named(tmp_path: Path) -> None:
    path = _published(tmp_path)
    (path / ".oculto").touch()
    with pytest.raises(CorruptDataError) as caught:
        verify(path)
    assert caught.value.where == str(path / ".oculto") and "sobra" in caught.value.why


@pytest.mark.parametrize("name", NAMES)
def test_symlink_is_refused_even_to_the_same_bytes(tmp_path: Path, name: str) -> None:
    path = _published(tmp_path)
    (path / name).rename(tmp_path / "fuera")
    (path / name).symlink_to(tmp_path / "fuera")
    with pytest.raises(CorruptDataError) as caught:
        verify(path)
    assert caught.value.where == str(path / name) and "enlace" in caught.value.why


@pytest.mark.parametrize("name", ["../fuera", "a/b", "/etc/passwd", "..", ".oculto", "", "manifest.json", "a\nb"])
def test_names_that_leave_the_folder_are_neither_written_nor_read(tmp_path: Path, name: str) -> None:
    with pytest.raises(ValueError, match="no vale"):
        publish(tmp_path / "step-1", {name: b""}, kind="k")
    assert list(tmp_path.iterdir()) == []
    path = tmp_path / "hostil-1"
    path.mkdir()
    entry = publish(tmp_path / "otro-1", {"x": b""}, kind="k").files["x"]
    (path / "manifest.json").write_bytes(encode_manifest("k", {name: entry}, {}, {}))
    with pytest.raises(CorruptDataError, match=r"manifest\.json"):
        verify(path)


@pytest.mark.parametrize("body", [[], {}, {"sha256": None}, {"files": 3}, {"format": 99}])
def test_manifest_of_another_shape_is_refused(tmp_path: Path, body: object) -> None:
    path = _published(tmp_path)
    (path / "manifest.json").write_bytes(to_json(body))  # type: ignore[arg-type]
    with pytest.raises(CorruptDataError) as caught:
        verify(path)
    assert caught.value.where == str(path / "manifest.json")


def test_another_kind_is_refused(tmp_path: Path) -> None:
    with pytest.raises(CorruptDataError) as caught:
        verify(_published(tmp_path), "model")
    assert "«checkpoint»" in caught.value.why and "«model»" in caught.value.why


def test_missing_artifact_is_not_found(tmp_path: Path) -> None:
    with pytest.raises(NotFoundError):
        verify(tmp_path / "step-1")


def test_existing_artifact_is_never_overwritten(tmp_path: Path) -> None:
    path = _published(tmp_path)
    with pytest.raises(EnlaceError, match="ya existe"):
        publish(path, {"x": b"otro"}, kind="k")
    assert verify(path, "checkpoint")
    assert list(tmp_path.iterdir()) == [path]


def test_content_that_fails_halfway_leaves_nothing(tmp_path: Path) -> None:
    def pieces() -> Iterator[bytes]:
        yield b"media"
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        publish(tmp_path / "step-1", {"x": pieces()}, kind="k")
    assert list(tmp_path.iterdir()) == []


def test_info_that_is_not_json_leaves_nothing(tmp_path: Path) -> None:
    with pytest.raises(ValueError):
        publish(tmp_path / "step-1", FILES, kind="k", info={"loss": float("nan")})
    assert list(tmp_path.iterdir()) == []


def test_latest_is_the_highest_that_verifies_by_number(tmp_path: Path) -> None:
    for step in (2, 9, 10, 11):
        publish(tmp_path / f"step-{step:03d}", FILES, kind="checkpoint")
    publish(tmp_path / "step-12", FILES, kind="model")
    (tmp_path / "step-011" / "model.bin").write_bytes(b"otra cosa")
    (tmp_path / "step-99x").mkdir()
    newest, rejected = latest(tmp_path, "step", "checkpoint")
    assert newest == tmp_path / "step-010"
    assert [path.name for path, _ in rejected] == ["step-12", "step-011"]
    assert rejected[1][1].where == str(tmp_path / "step-011" / "model.bin")


def test_latest_of_nothing_is_none(tmp_path: Path) -> None:
    assert latest(tmp_path / "no-existe", "step", "checkpoint") == (None, [])
    assert latest(tmp_path, "step", "checkpoint") == (None, [])


def test_several_threads_publish_at_once_and_sweep_spares_them(tmp_path: Path) -> None:
    gate = threading.Barrier(5)

    def pieces() -> Iterator[bytes]:
        yield b"uno"
        gate.wait(timeout=30)  # los cuatro están a medias; el hilo principal barre
        gate.wait(timeout=30)
        yield b"dos"

    def work(step: int) -> None:
        publish(tmp_path / f"step-{step}", {"x": pieces()}, kind="k")

    threads = [threading.Thread(target=work, args=(step,)) for step in range(4)]
    for thread in threads:
        thread.start()
    gate.wait(timeout=30)
    assert sweep(tmp_path) == []
    gate.wait(timeout=30)
    for thread in threads:
        thread.join()
    assert [verify(tmp_path / f"step-{step}").files["x"].bytes for step in range(4)] == [6] * 4


def test_only_one_of_two_publishers_of_the_same_path_wins(tmp_path: Path) -> None:
    def intruded() -> Iterator[bytes]:
        publish(tmp_path / "step-1", {"x": b"el primero"}, kind="k")
        yield b"el segundo"

    with pytest.raises(EnlaceError, match="no se ha podido escribir"):
        publish(tmp_path / "step-1", {"x": intruded()}, kind="k")
    assert (tmp_path / "step-1" / "x").read_bytes() == b"el primero"
    assert [place.name for place in tmp_path.iterdir()] == ["step-1"]


def test_identical_content_has_a_different_identity_only_by_its_manifest(tmp_path: Path) -> None:
    manifests = [publish(tmp_path / f"a-{n}", FILES, kind="k", info={"n": n}) for n in range(3)]
    assert all(one.files == other.files and one.sha256 != other.sha256 for one, other in pairwise(manifests))


def test_replacing_swaps_the_old_for_the_new(tmp_path: Path) -> None:
    path = tmp_path / "model"
    for content in (b"viejo", b"nuevo"):
        assert publish(path, {"x": content}, kind="model", overwrite=True) == verify(path, "model")
        assert (path / "x").read_bytes() == content
    assert [place.name for place in tmp_path.iterdir()] == ["model"]


def test_a_replacement_that_does_not_fit_leaves_the_old_one(tmp_path: Path) -> None:
    def too_much() -> Iterator[bytes]:
        yield b"principio"
        raise OSError(28, "No space left on device")

    path = tmp_path / "model"
    publish(path, {"x": b"viejo"}, kind="model", overwrite=True)
    with pytest.raises(ResourceError):
        publish(path, {"x": too_much()}, kind="model", overwrite=True)
    verify(path, "model")
    assert [place.name for place in tmp_path.iterdir()] == ["model"]
