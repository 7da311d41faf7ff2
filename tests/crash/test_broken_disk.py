"""Disco lleno o roto: error claro, lo anterior intacto y nada a medias."""

import errno
import resource
import shutil
from collections.abc import Callable
from itertools import count
from pathlib import Path

import pytest

from enlace.durable import AppendLog, Disk, latest, publish, read_log, remove, require_space, sweep, verify, write_file
from enlace.errors import EnlaceError, ResourceError, render

from .disks import FailingDisk
from .forks import IGNORE_FORK_WARNING, start_child, wait_for

pytestmark = pytest.mark.filterwarnings(IGNORE_FORK_WARNING)
OLD, NEW = {"model.bin": b"antes", "state.json": b"{}"}, {"model.bin": b"despues", "state.json": b"[]"}


def _publish(folder: Path, disk: Disk) -> None:
    publish(folder / "step-2", NEW, kind="checkpoint", disk=disk)


def _write_file(folder: Path, disk: Disk) -> None:
    write_file(folder / "config.yaml", b"nueva", disk=disk)


def _previous(folder: Path) -> None:
    """Lo que ya estaba guardado antes de que el disco fallara."""
    publish(folder / "step-1", OLD, kind="checkpoint")
    write_file(folder / "config.yaml", b"vieja")


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO])
@pytest.mark.parametrize("action", [_publish, _write_file])
def test_failure_of_any_verb_leaves_the_previous_and_no_litter(
    tmp_path: Path, action: Callable[[Path, Disk], None], code: int
) -> None:
    failures = 0
    for nth in count(1):
        folder = tmp_path / str(nth)
        _previous(folder)
        disk = FailingDisk(nth, code)
        try:
            action(folder, disk)
        except EnlaceError as error:
            failures += 1
            _check_message(error, code)
        assert verify(folder / "step-1", "checkpoint")
        assert (folder / "config.yaml").read_bytes() in (b"vieja", b"nueva")
        assert {place.name for place in folder.iterdir()} <= {"step-1", "step-2", "config.yaml"}
        if not disk.failed:
            break
        assert not (folder / "step-2").exists()
    assert failures == nth - 1 >= 5


def _check_message(error: EnlaceError, code: int) -> None:
    if code == errno.EIO:
        assert type(error) is EnlaceError and "el disco ha fallado" in error.what
    else:
        assert isinstance(error, ResourceError) and error.exit_code == 8 and "libres" in error.what
    assert errno.errorcode[code] in render(error)


@pytest.mark.parametrize("action", [_publish, _write_file])
def test_disk_that_dies_leaves_the_previous_and_sweep_cleans_the_rest(
    tmp_path: Path, action: Callable[[Path, Disk], None]
) -> None:
    for nth in count(1):
        folder = tmp_path / str(nth)
        _previous(folder)
        status = wait_for(
            start_child(lambda nth=nth, folder=folder: action(folder, FailingDisk(nth, errno.EIO, dead=True)))
        )
        sweep(folder)
        newest, rejected = latest(folder, "step", "checkpoint")
        assert newest is not None and rejected == []
        assert {place.name for place in folder.iterdir()} <= {"step-1", "step-2", "config.yaml"}
        if status == 0:
            break


def test_failed_removal_leaves_the_artifact_whole_or_out_of_sight(tmp_path: Path) -> None:
    for nth in count(1):
        folder = tmp_path / str(nth)
        _previous(folder)

        def fail(folder: Path = folder, nth: int = nth) -> None:
            remove(folder / "step-1", disk=FailingDisk(nth, errno.EIO))

        status = wait_for(start_child(fail))
        assert latest(folder, "step", "checkpoint")[1] == []
        sweep(folder)
        assert {place.name for place in folder.iterdir()} <= {"step-1", "config.yaml"}
        if status == 0:
            break


def test_failed_fsync_is_never_retried(tmp_path: Path) -> None:
    disk = FailingDisk(4, errno.EIO)
    with pytest.raises(EnlaceError, match="el disco ha fallado"):
        publish(tmp_path / "step-1", NEW, kind="checkpoint", disk=disk)
    assert disk.verbs == ["mkdir", "create", "write", "fsync", "unlink", "rmdir"]


def test_log_without_space_keeps_whole_lines(tmp_path: Path) -> None:
    log = AppendLog(tmp_path / "log.jsonl", disk=(disk := FailingDisk(6, errno.ENOSPC)))
    log.append({"step": 1})
    position = log.sync()
    with pytest.raises(ResourceError, match="no hay espacio"):
        log.append({"step": 2})
    assert disk.verbs[-2:] == ["write", "truncate"]
    log.append({"step": 3})
    log.rewind(position)
    log.append({"step": 4})
    log.close()
    assert read_log(tmp_path / "log.jsonl") == [{"step": 1}, {"step": 4}]


def test_file_size_limit_is_reported_as_lack_of_space(tmp_path: Path) -> None:
    publish(tmp_path / "step-1", OLD, kind="checkpoint")

    def publish_too_much() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (50_000, 50_000))  # Python ya ignora SIGXFSZ: llega EFBIG
        with pytest.raises(ResourceError, match="no hay espacio"):
            publish(tmp_path / "step-2", {"model.bin": bytes(100_000)}, kind="checkpoint")
        publish(tmp_path / "step-3", {"model.bin": bytes(40_000)}, kind="checkpoint")

    assert wait_for(start_child(publish_too_much)) == 0
    assert {place.name for place in tmp_path.iterdir()} == {"step-1", "step-3"}
    verify(tmp_path / "step-1", "checkpoint")


def test_required_space_is_checked_before_writing(tmp_path: Path) -> None:
    free = shutil.disk_usage(tmp_path).free
    require_space(tmp_path / "aun" / "no" / "existe", free // 2)
    with pytest.raises(ResourceError, match=r"hacen falta .*,.* TB y quedan .* libres"):
        require_space(tmp_path, free + 7 * 10**12)
