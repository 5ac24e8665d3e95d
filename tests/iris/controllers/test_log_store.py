"""What attempts wrote is kept once, in order, across restarts of either side."""

import subprocess
from collections.abc import Generator
from pathlib import Path

import anyio
import pytest

from neorion.iris.controllers import log_store as shelf_module
from neorion.iris.controllers.log_store import CHUNK_BYTES, LOG_BYTES_MAX, PART_BYTES, LogStore
from neorion.iris.model import AttemptId, JobId
from neorion.keel.base import NoCapacity

pytestmark = pytest.mark.anyio
JOB, ATTEMPT = JobId("job-1"), AttemptId("attempt-1")


async def text(log_store: LogStore) -> bytes:
    return b"".join([chunk async for _, chunk in log_store.read(JOB, ATTEMPT, 0, follow=False)])


async def test_sent_twice_is_kept_once_also_after_a_restart(tmp_path: Path):
    assert LogStore(tmp_path).append(JOB, ATTEMPT, 0, b"one ") == 4
    log_store = LogStore(tmp_path)
    assert log_store.append(JOB, ATTEMPT, 0, b"one two ") == 8
    assert log_store.append(JOB, ATTEMPT, 4, b"two three") == 13
    assert await text(log_store) == b"one two three"


async def test_a_worker_that_is_ahead_is_sent_back(tmp_path: Path):
    log_store = LogStore(tmp_path)
    log_store.append(JOB, ATTEMPT, 0, b"one ")
    assert log_store.append(JOB, ATTEMPT, 8, b"three") == 4
    assert log_store.append(JOB, ATTEMPT, 4, b"two three") == 13
    assert await text(log_store) == b"one two three"


async def test_the_last_part_says_what_is_missing_before_it(tmp_path: Path):
    log_store = LogStore(tmp_path)
    log_store.append(JOB, ATTEMPT, 0, b"one\n")
    log_store.append(JOB, ATTEMPT, 8, b"three", gap=True)
    assert await text(log_store) == b"one\n\n[4 bytes dropped]\nthree"


@pytest.mark.parametrize(
    "words", [b"", b"\n", b"one", b"one\n", b"one\ntwo", b"\n\none\n\n", b"a long line\nb\nanother long\n\n"]
)
async def test_the_last_lines_are_found_wherever_parts_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: bytes
):
    monkeypatch.setattr(shelf_module, "CHUNK_BYTES", 3)
    monkeypatch.setattr(shelf_module, "PART_BYTES", 4)
    log_store = LogStore(tmp_path)
    for offset in range(len(words)):
        log_store.append(JOB, ATTEMPT, offset, words[offset : offset + 1])
    for lines in range(1, 8):
        start = await log_store.line_start(JOB, ATTEMPT, lines)
        assert words[start:] == b"".join(words.splitlines(keepends=True)[-lines:])


async def test_of_what_is_gone_no_line_is_found(tmp_path: Path):
    log_store = LogStore(tmp_path)
    log_store.append(JOB, ATTEMPT, 100, b"three\nfour\n", gap=True)
    assert [await log_store.line_start(JOB, ATTEMPT, lines) for lines in (1, 2, 3)] == [106, 100, 100]


async def test_of_a_log_that_outgrew_its_room_the_newest_is_kept_also_after_a_restart(tmp_path: Path):
    log_store = LogStore(tmp_path)
    whole = b"".join(b"%063d\n" % number for number in range((LOG_BYTES_MAX + 3 * PART_BYTES) // 64))
    for offset in range(0, len(whole), CHUNK_BYTES):
        log_store.append(JOB, ATTEMPT, offset, whole[offset : offset + CHUNK_BYTES])
    assert sum(path.stat().st_size for path in tmp_path.rglob("*") if path.is_file()) <= LOG_BYTES_MAX
    for each in (log_store, LogStore(tmp_path)):
        mark, _, rest = (await text(each)).partition(b"\n")
        assert whole.endswith(rest)
        assert len(rest) >= LOG_BYTES_MAX - PART_BYTES
        assert mark == b"[%d bytes dropped]" % (len(whole) - len(rest))
        assert each.append(JOB, ATTEMPT, len(whole) - 1, b"\n") == len(whole)
    log_store.forget(JOB)
    assert not list(tmp_path.iterdir())


async def test_who_follows_is_told_what_was_dropped_and_goes_on_behind_it(tmp_path: Path):
    log_store = LogStore(tmp_path)
    log_store.append(JOB, ATTEMPT, 0, b"one\n")
    log_store.append(JOB, ATTEMPT, 100, b"late\n", gap=True)
    told = [each async for each in log_store.read(JOB, ATTEMPT, 4, follow=False)]
    assert b"".join(chunk for _, chunk in told) == b"\n[96 bytes dropped]\nlate\n"
    place, chunk = told[0]
    assert place + len(chunk) == 100
    assert [each async for each in log_store.read(JOB, ATTEMPT, 100, follow=False)] == [(100, b"late\n")]
    assert log_store.append(JOB, ATTEMPT, 105, b"later\n") == 111


@pytest.fixture
def small_disk(tmp_path: Path) -> Generator[Path]:
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", tmp_path], check=True)
    yield tmp_path
    subprocess.run(["umount", tmp_path], check=True)


@pytest.mark.needs("root")
async def test_what_a_full_disk_did_not_take_follows_in_its_place(small_disk: Path):
    log_store, lines = LogStore(small_disk), b"".join(b"%07d\n" % number for number in range(20_000))
    kept = log_store.append(JOB, ATTEMPT, 0, lines[:10])
    with pytest.raises(NoCapacity) as full:
        log_store.append(JOB, ATTEMPT, kept, lines[kept:])
    assert full.value.code == "iris.logs_full"
    await anyio.run_process(["mount", "-o", "remount,size=1m", str(small_disk)])
    assert log_store.append(JOB, ATTEMPT, kept, lines[kept:]) == len(lines)
    assert await text(log_store) == lines
