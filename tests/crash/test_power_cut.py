"""Ningún corte de luz, en ningún instante, pierde lo prometido ni deja a la vista algo a medias."""

import shutil
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

import pytest

from enlace.durable import AppendLog, latest, publish, remove, sweep, verify, write_file
from enlace.durable import staging as staging_module
from enlace.errors import EnlaceError

from .disks import ForgetfulDisk, RecordingDisk
from .power_cut import File, Tree, crash_states, materialise

CONTENTS = {
    "step-1": {"model.bin": b"pesos del paso 1", "state.json": b'{"step":1}'},
    "step-2": {"model.bin": b"pesos del paso 2, otros", "state.json": b'{"step":2}'},
}
Log = list[tuple[object, ...]]
Judge = Callable[[Tree, frozenset[tuple[object, ...]]], str | None]


@pytest.fixture
def earlier_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lo apuntado lo hizo un proceso que ya no existe: `sweep` tiene que poder barrer lo que dejó."""
    monkeypatch.setattr(staging_module, "_SESSION", "0" * 8)


@pytest.fixture
def judge(tmp_path: Path) -> Judge:
    """Monta un disco, le pasa el `latest`, el `verify` y el `sweep` de verdad y dice qué está mal, si algo lo está."""
    folder = tmp_path / "tras-el-corte"

    @cache
    def verdict(tree: Tree, notes: frozenset[tuple[object, ...]]) -> str | None:
        materialise(tree, folder)
        try:
            return _what_is_wrong(folder, notes)
        finally:
            shutil.rmtree(folder)

    return verdict


def _what_is_wrong(folder: Path, notes: frozenset[tuple[object, ...]]) -> str | None:
    _as_a_new_process_sweeps(folder)
    newest, rejected = latest(folder, "step", "checkpoint")
    if rejected:
        return f"hay algo corrupto a la vista: {rejected[0][1].why}"
    if newest is not None and any((newest / name).read_bytes() != data for name, data in CONTENTS[newest.name].items()):
        return "latest ha elegido algo que no es lo que se escribió"
    for name in CONTENTS:
        if ("published", name) in notes and ("removing", name) not in notes:
            try:
                verify(folder / name, "checkpoint")
            except EnlaceError as error:
                return f"se ha perdido {name}: {error.what}"
        if ("removed", name) in notes and (folder / name).exists():
            return f"ha vuelto {name}, que estaba borrado"
    if any(place.name.startswith(".") for place in folder.iterdir()):
        return "sweep no lo ha barrido todo"
    return None


def _as_a_new_process_sweeps(folder: Path) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(staging_module, "_SESSION", "f" * 8)
        sweep(folder)


def _replace_an_artifact(folder: Path, disk: RecordingDisk) -> Log:
    folder.mkdir()
    for name, files in CONTENTS.items():
        publish(folder / name, files, kind="checkpoint", disk=disk)
        disk.note("published", name)
    disk.note("removing", "step-1")
    remove(folder / "step-1", disk=disk)
    disk.note("removed", "step-1")
    return disk.log


def _verdicts(log: Log, root: Path, judge: Judge) -> Iterator[str | None]:
    seen: set[tuple[Tree, frozenset[tuple[object, ...]]]] = set()
    for notes, trees in crash_states(log, root):
        for state in {(tree, frozenset(notes)) for tree in trees} - seen:
            seen.add(state)
            yield judge(*state)


def test_no_power_cut_loses_a_published_artifact(tmp_path: Path, earlier_process: None, judge: Judge) -> None:
    log = _replace_an_artifact(tmp_path / "runs", RecordingDisk())
    verdicts = list(_verdicts(log, tmp_path / "runs", judge))
    assert set(verdicts) == {None}
    assert len(verdicts) == 68  # si el modelo encogiera, la prueba dejaría de decir algo


@pytest.mark.parametrize("verb", ["fsync", "fsync_dir"])
def test_enumerator_catches_a_protocol_without_a_sync_verb(
    tmp_path: Path, earlier_process: None, judge: Judge, verb: str
) -> None:
    log = _replace_an_artifact(tmp_path / "runs", ForgetfulDisk(verb))
    assert any(_verdicts(log, tmp_path / "runs", judge))


def test_every_single_sync_of_the_protocol_is_needed(tmp_path: Path, earlier_process: None, judge: Judge) -> None:
    log = _replace_an_artifact(tmp_path / "runs", RecordingDisk())
    syncs = [index for index, (verb, *_) in enumerate(log) if verb in ("fsync", "fsync_dir")]
    needless = [
        log[index] for index in syncs if not any(_verdicts(log[:index] + log[index + 1 :], tmp_path / "runs", judge))
    ]
    assert needless == []
    assert len(syncs) == 11  # por artefacto: dos ficheros, el manifiesto, su carpeta y la de encima; más la de borrar


def _replace_a_file(folder: Path, disk: RecordingDisk) -> Log:
    folder.mkdir()
    for text in (b"name: vieja\n", b"name: nueva, y algo mayor\n"):
        write_file(folder / "config.yaml", text, disk=disk)
        disk.note("written", text)
    return disk.log


def _file_is_wrong(tree: Tree, written: list[object]) -> bool:
    allowed = {None, b"name: vieja\n", b"name: nueva, y algo mayor\n"}
    if written:
        allowed = {written[-1], b"name: nueva, y algo mayor\n"}
    return dict(tree).get("config.yaml") not in allowed


@pytest.mark.parametrize(("lost", "safe"), [(None, True), ("fsync", False), ("fsync_dir", False)])
def test_no_power_cut_breaks_a_replaced_file(tmp_path: Path, lost: str | None, safe: bool) -> None:
    log = _replace_a_file(tmp_path / "run", ForgetfulDisk(lost) if lost else RecordingDisk())
    bad = [
        tree
        for notes, trees in crash_states(log, tmp_path / "run")
        for tree in trees
        if _file_is_wrong(tree, [what for _, what in notes])
    ]
    assert (bad == []) is safe


@pytest.mark.parametrize(("lost", "safe"), [(None, True), ("fsync", False), ("fsync_dir", False)])
def test_no_power_cut_loses_a_synced_log_position(tmp_path: Path, lost: str | None, safe: bool) -> None:
    disk = ForgetfulDisk(lost) if lost else RecordingDisk()
    run = tmp_path / "run"
    run.mkdir()
    log = AppendLog(run / "log.jsonl", disk=disk)
    for step in range(4):
        log.append({"step": step})
        if step % 2:
            disk.note("synced", log.sync())
    log.close()
    lost_positions = 0
    for notes, trees in crash_states(disk.log, run):
        for tree in trees:
            lost_positions += not all(_can_rewind(tree, tmp_path / "tras-el-corte", position) for _, position in notes)
    assert (lost_positions == 0) is safe


def _can_rewind(tree: Tree, folder: Path, position: object) -> bool:
    materialise(tree, folder)
    reopened = AppendLog(folder / "log.jsonl")
    try:
        reopened.rewind(position)  # type: ignore[arg-type]
    except EnlaceError:
        return False
    finally:
        reopened.close()
        shutil.rmtree(folder)
    return True


def test_unsynced_content_may_be_whole_empty_or_torn() -> None:
    assert File(durable=b"", current=b"abcd").states() == {b"", b"ab", b"abcd"}
    assert File(durable=b"abcd", current=b"abcd").states() == {b"abcd"}
