"""Mistakes of a worker that takes an order for an attempt that has ended, planted to see that they are found."""

from typing import Any

import pytest

from neorion.iris.model import AttemptId
from neorion.iris.model.gen import iris_pb as pb
from neorion.iris.worker import WorkerDaemon
from neorion.iris.worker.history import AttemptHistory


def never(_history: AttemptHistory, _attempt: AttemptId) -> bool:
    return False


def obey_an_order_that_comes_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    """A worker takes an order for an attempt that has ended for a new one."""
    monkeypatch.setattr(AttemptHistory, "ended", never)
    monkeypatch.setattr(AttemptHistory, "settled", never)


def look_for_the_end_only_before_the_files_are_fetched(monkeypatch: pytest.MonkeyPatch) -> None:
    """The attempt ends, is reported and is removed from the runtime while its order waits for files."""
    start_once, ended = WorkerDaemon._start_once, AttemptHistory.ended
    late: dict[AttemptId, None] = {}

    async def start_late(worker: Any, attempt: AttemptId, start: pb.Start) -> None:
        if not ended(worker._history, attempt):
            late[attempt] = None
        await start_once(worker, attempt, start)

    def ended_before(history: AttemptHistory, attempt: AttemptId) -> bool:
        return attempt not in late and ended(history, attempt)

    monkeypatch.setattr(WorkerDaemon, "_start_once", start_late)
    monkeypatch.setattr(AttemptHistory, "ended", ended_before)
    monkeypatch.setattr(AttemptHistory, "starting", never)
