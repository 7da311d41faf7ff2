"""El registro: añadir, volver atrás y leer tras un corte."""

import hashlib
import tempfile
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from enlace.durable import AppendLog, Position, read_log
from enlace.errors import CorruptDataError, NotFoundError

RECORDS = st.lists(
    st.dictionaries(st.sampled_from(["step", "loss", "ñ"]), st.integers() | st.text('aé\n"', max_size=5)), max_size=6
)


@pytest.fixture
def log(tmp_path: Path) -> Iterator[AppendLog]:
    with closing(AppendLog(tmp_path / "run" / "log.jsonl")) as opened:
        yield opened


@given(before=RECORDS, after=RECORDS, again=RECORDS, tail=st.binary(max_size=9).filter(lambda tail: b"\n" not in tail))
@settings(max_examples=60)
def test_rewind_after_a_crash_equals_never_having_gone_on(
    before: list[dict[str, object]], after: list[dict[str, object]], again: list[dict[str, object]], tail: bytes
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "log.jsonl"
        position = _append_all(path, before)
        _append_all(path, after)
        with path.open("ab") as file:
            file.write(tail)
        assert read_log(path) == before + after
        with closing(AppendLog(path)) as log:
            log.rewind(position)
        resumed = _append_all(path, again)
        straight = _append_all(Path(folder) / "recto.jsonl", before + again)
        assert resumed == straight
        assert read_log(path) == before + again


def _append_all(path: Path, records: list[dict[str, object]]) -> Position:
    with closing(AppendLog(path)) as log:
        for record in records:
            log.append(record)  # type: ignore[arg-type]
        return log.sync()


def test_reopening_cuts_an_incomplete_last_line(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    path.write_bytes(b'{"step":1}\n{"st')
    _append_all(path, [{"step": 2}])
    assert read_log(path) == [{"step": 1}, {"step": 2}]


@pytest.mark.parametrize("size", [0, 1, 3, 1 << 20, (1 << 20) + 1, 3 << 20])
def test_reopening_cuts_however_long_the_lines_are(size: int, tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    lines = b'{"a":"' + b"x" * size + b'"}\n'
    path.write_bytes(lines + lines[:-1])
    with closing(AppendLog(path)) as log:
        assert log.sync() == Position(len(lines), hashlib.sha256(lines).hexdigest())
    assert path.read_bytes() == lines


def test_rewind_of_a_changed_prefix_is_refused_and_touches_nothing(tmp_path: Path, log: AppendLog) -> None:
    log.append({"step": 1})
    position = log.sync()
    log.append({"step": 2})
    path = tmp_path / "run" / "log.jsonl"
    changed = path.read_bytes().replace(b"1", b"7")
    path.write_bytes(changed)
    with pytest.raises(CorruptDataError) as caught:
        log.rewind(position)
    assert caught.value.where == str(path)
    assert path.read_bytes() == changed


def test_rewind_beyond_the_end_is_refused(log: AppendLog) -> None:
    log.append({"step": 1})
    position = log.sync()
    log.rewind(Position(0, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"))
    with pytest.raises(CorruptDataError):
        log.rewind(position)
    with pytest.raises(CorruptDataError):
        log.rewind(Position(position.bytes, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"))


def test_record_that_is_not_json_leaves_no_trace(tmp_path: Path, log: AppendLog) -> None:
    with pytest.raises(ValueError):
        log.append({"loss": float("nan")})
    log.append({"loss": None})
    assert read_log(tmp_path / "run" / "log.jsonl") == [{"loss": None}]


@pytest.mark.parametrize("line", [b"{", b"[]", b"3", b"", b'"\xff"'])
def test_complete_line_that_is_not_a_record_is_named(tmp_path: Path, line: bytes) -> None:
    path = tmp_path / "log.jsonl"
    path.write_bytes(b"{}\n" + line + b"\n{}\n")
    with pytest.raises(CorruptDataError) as caught:
        read_log(path)
    assert caught.value.where == f"{path}:2"


def test_missing_log_is_not_found(tmp_path: Path) -> None:
    with pytest.raises(NotFoundError):
        read_log(tmp_path / "log.jsonl")
