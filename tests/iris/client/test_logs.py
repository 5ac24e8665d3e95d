"""What a task writes reaches who reads it: all of it, or the newest of it and how much is missing."""

import re

from neorion.iris.client import IrisClient

LINE = "x" * 999 + "\n"
LAST = "the last words\n"


def test_a_task_that_writes_more_than_is_kept_is_read_to_its_last_line(client: IrisClient):
    # Faster than it is sent: some is dropped on the worker's side, some on the controller's.
    job = client.submit(f"yes {LINE.strip()} | head -n 200000; echo {LAST.strip()}; exit 3", "long-winded")
    followed = "".join(client.follow(job))
    for read in (followed, client.logs(job)):
        assert read.endswith(LINE + LAST)
        assert read.count("\0") == 0
        marks = list(re.finditer(r"\[(\d+) bytes dropped\]\n", read))
        assert marks
        # Each stands in a line of its own.
        said = sum(len(mark[0]) + (mark.start() > 0) for mark in marks)
        dropped = sum(int(mark[1]) for mark in marks)
        assert len(read) - said + dropped == 200_000 * len(LINE) + len(LAST)
    assert client.logs(job, tail_lines=1) == LAST
