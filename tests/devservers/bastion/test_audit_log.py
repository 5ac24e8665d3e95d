"""The audit log as a file, across the death of its writer."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from msgspec.structs import replace

from neorion.devservers.bastion import AuditLog, Retention, sweep
from neorion.devservers.decide.audit import LogFile, verify, verify_files
from neorion.devservers.model.audit import AuditEvent, AuditRecord
from neorion.keel.base import Instant
from neorion.keel.clock import VirtualClock

RECORD = AuditRecord(number=0, time="now", event=AuditEvent.LOGIN, connection="ssh-1", user="ann")


def test_a_writer_goes_on_where_the_one_before_was_killed(tmp_path: Path):
    file = tmp_path / "logs" / "audit.jsonl"
    first = AuditLog(file)
    first.write(RECORD)
    # Never closed, and in the middle of a line.
    with file.open("ab") as half:
        half.write(b'{"number":2,"ti')
    second = AuditLog(file)
    second.write(RECORD)
    head, flaws = verify(file.read_bytes().splitlines())
    assert (head.number, flaws) == (2, [])
    first.close()
    second.close()


def test_nobody_else_reads_it(tmp_path: Path):
    file = tmp_path / "audit.jsonl"
    AuditLog(file).close()
    assert file.stat().st_mode & 0o077 == 0


def at(time: str) -> AuditRecord:
    return replace(RECORD, time=time)


def files(folder: Path) -> list[LogFile]:
    return [LogFile(one.name, one.read_bytes().splitlines()) for one in sorted(folder.glob("*.jsonl"))]


def write_three_files(folder: Path) -> None:
    """Three days of two records each, the last in the file that is still written."""
    log = AuditLog(folder / "audit.jsonl", "bastion-0")
    for day in ("01", "02", "03"):
        for hour in ("08", "20"):
            log.write(at(f"2026-03-{day}T{hour}:00:00Z"))
    log.close()


def test_a_log_is_rotated_by_day_and_by_size_and_stays_one_chain(tmp_path: Path):
    write_three_files(tmp_path)
    assert [one.name for one in files(tmp_path)] == [
        "audit-000000000001.jsonl",
        "audit-000000000003.jsonl",
        "audit.jsonl",
    ]
    checked = verify_files(files(tmp_path))
    assert [(one.head.number, one.flaws) for one in checked] == [(2, ()), (4, ()), (6, ())]
    small = AuditLog(tmp_path / "small" / "audit.jsonl", rotate_bytes=1000)
    for _ in range(20):
        small.write(RECORD)
    small.close()
    assert all(one.stat().st_size <= 1000 for one in (tmp_path / "small").iterdir())
    assert len(small.rotated()) > 2


def test_a_writer_goes_on_after_a_kill_between_a_rotation_and_the_next_record(tmp_path: Path):
    write_three_files(tmp_path)
    (tmp_path / "audit.jsonl").rename(tmp_path / "audit-000000000005.jsonl")
    log = AuditLog(tmp_path / "audit.jsonl", "bastion-0")
    log.write(at("2026-03-04T08:00:00Z"))
    log.close()
    assert [one.flaws for one in verify_files(files(tmp_path))] == [(), (), (), ()]


def edit(lines: list[bytes]) -> list[bytes]:
    return [lines[0].replace(b"ann", b"bob"), *lines[1:]]


def without_the_first(lines: list[bytes]) -> list[bytes]:
    return lines[1:]


def reversed_lines(lines: list[bytes]) -> list[bytes]:
    return lines[::-1]


def only_the_first(lines: list[bytes]) -> list[bytes]:
    return lines[:1]


def emptied(_: list[bytes]) -> list[bytes]:
    return []


def with_another(lines: list[bytes]) -> list[bytes]:
    return [*lines, b"x"]


@pytest.mark.parametrize(
    ("change", "file", "reason"),
    [
        (edit, 1, "It was edited."),
        (without_the_first, 1, "Record 3 is missing or was moved."),
        (reversed_lines, 1, "Record 3 is missing or was moved."),
        (only_the_first, 2, "Record 4 is missing or was moved."),
        (emptied, 2, "Record 3 is missing or was moved."),
        (with_another, 1, "It is not an audit record."),
    ],
)
def test_a_change_to_a_rotated_file_is_found(
    tmp_path: Path, change: Callable[[list[bytes]], list[bytes]], file: int, reason: str
):
    write_three_files(tmp_path)
    logs = files(tmp_path)
    logs[1] = LogFile(logs[1].name, change(list(logs[1].lines)))
    checked = {one.name: one.flaws for one in verify_files(logs)}
    assert checked[logs[file].name][0].reason == reason


def test_the_logs_of_two_replicas_are_two_chains(tmp_path: Path):
    for name in ("bastion-0", "bastion-1"):
        log = AuditLog(tmp_path / f"{name}.jsonl", name)
        log.write(RECORD)
        log.write(RECORD)
        log.close()
    assert [one.flaws for one in verify_files(files(tmp_path))] == [(), ()]


def test_old_files_are_deleted_and_recordings_beyond_their_space(tmp_path: Path):
    write_three_files(tmp_path)
    recordings = tmp_path / "recordings"
    recordings.mkdir()
    now = 1_800_000_000.0
    for number in range(4):
        cast = recordings / f"ssh-{number}.cast"
        cast.write_bytes(b"x" * 100)
        os.utime(cast, (now, now + number))
    for number, file in enumerate(sorted(tmp_path.glob("*.jsonl"))):
        os.utime(file, (now, now - (10 - number) * 24 * 3600))
    clock = VirtualClock(lambda: 0.0, Instant(int(now * 1e9)))
    log = AuditLog(tmp_path / "audit.jsonl", "bastion-0")
    gone = sweep(log, recordings, Retention(days=9, recordings_bytes=250), clock)
    log.close()
    assert [one.name for one in gone] == ["audit-000000000001.jsonl", "ssh-0.cast", "ssh-1.cast"]
    assert not any(one.exists() for one in gone)
    assert [one.flaws for one in verify_files(files(tmp_path))] == [(), ()]
