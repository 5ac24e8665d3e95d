"""What attempts wrote is kept once, in order, across restarts of either side."""

from pathlib import Path

import pytest

from neorion.iris.act.shelf import LogShelf
from neorion.iris.model import AttemptId, JobId

pytestmark = pytest.mark.anyio
JOB, ATTEMPT = JobId("job-1"), AttemptId("attempt-1")


async def text(shelf: LogShelf) -> bytes:
    return b"".join([chunk async for _, chunk in shelf.read(JOB, ATTEMPT, 0, follow=False)])


async def test_sent_twice_is_kept_once_also_after_a_restart(tmp_path: Path):
    assert LogShelf(tmp_path).append(JOB, ATTEMPT, 0, b"one ") == 4
    shelf = LogShelf(tmp_path)
    assert shelf.append(JOB, ATTEMPT, 0, b"one two ") == 8
    assert shelf.append(JOB, ATTEMPT, 4, b"two three") == 13
    assert await text(shelf) == b"one two three"


async def test_a_worker_that_is_ahead_is_sent_back(tmp_path: Path):
    shelf = LogShelf(tmp_path)
    shelf.append(JOB, ATTEMPT, 0, b"one ")
    assert shelf.append(JOB, ATTEMPT, 8, b"three") == 4
    assert shelf.append(JOB, ATTEMPT, 4, b"two three") == 13
    assert await text(shelf) == b"one two three"


async def test_the_last_part_says_what_is_missing_before_it(tmp_path: Path):
    shelf = LogShelf(tmp_path)
    shelf.append(JOB, ATTEMPT, 0, b"one\n")
    shelf.append(JOB, ATTEMPT, 8, b"three", last=True)
    assert await text(shelf) == b"one\n[4 bytes dropped]\nthree"
