"""A store's process is killed, or its disk fails, at every single write it makes."""

import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import pytest

from neorion.keel.clock import SystemClock
from neorion.keel.store import open_store
from tests.keel.store.schema import ALL, keys

pytestmark = [pytest.mark.anyio, pytest.mark.needs("strace"), pytest.mark.timeout(480)]

# Enough to come through creation, migrations, the epoch, group commits and a checkpoint.
ROUNDS = 4
SYNCS = ("fdatasync", "fsync")
WRITES = ("pwrite64", "ftruncate", *SYNCS)
WRITES_JOURNAL = re.compile(r"\d+ +pwrite64\(\d+<[^>]*-wal>")
SYNCS_JOURNAL = re.compile(r"\d+ +fdatasync\(\d+<[^>]*-wal>")
STORAGE_FAILED = 74
# Stops at the traced calls alone, and not at the thousands that a start of Python makes; such stops can send no signal.
SWIFT = "--seccomp-bpf"


@dataclass(frozen=True)
class Run:
    """How a writer ended, and what it had told before."""

    status: int
    lines: list[str]
    trace: list[str]

    @property
    def acknowledged(self) -> list[str]:
        return [line.removeprefix("ack ") for line in self.lines if line.startswith("ack ")]


def traced(place: Path, *strace: str) -> Run:
    """One writer under strace. All writes come from one thread, so that counting them means the same every time."""
    log = place / "trace"
    command = [
        "strace",
        "-f",
        "-y",
        "-qq",
        "-e",
        f"trace=write,{','.join(WRITES)}",
        "-e",
        "signal=none",
        "-o",
        str(log),
        *strace,
    ]
    writer = [sys.executable, "-m", "tests.keel.store.writer", "run", str(place / "store.db"), str(ROUNDS)]
    done = subprocess.run([*command, *writer], capture_output=True, text=True, check=False)
    return Run(done.returncode, done.stdout.splitlines(), log.read_text().splitlines())


def points(trace: list[str], call: str) -> int:
    return sum(bool(re.match(rf"\d+ +{call}\(", line)) for line in trace)


def at_every_point(tmp_path: Path, calls: tuple[str, ...], fault: str) -> list[tuple[Path, Run]]:
    """One run for each of these calls that a clean run makes. strace counts every kind of call by itself."""
    clean = tmp_path / "clean"
    clean.mkdir()
    first = traced(clean, SWIFT)
    assert first.status == 0
    assert len(first.acknowledged) == 3 * ROUNDS

    def hit(call: str, n: int) -> tuple[Path, Run] | None:
        place = tmp_path / f"{call}-{n}"
        place.mkdir()
        swift = (SWIFT,) if fault.startswith("error") else ()
        run = traced(place, *swift, "-e", f"inject={call}:{fault}:when={n}")
        # A checkpoint more or less, and the last few are not reached.
        return None if points(run.trace, call) < n else (place, run)

    targets = [(call, n) for call in calls for n in range(1, points(first.trace, call) + 1)]
    with ThreadPoolExecutor(2) as two:
        runs = [done for done in two.map(hit, *zip(*targets, strict=True)) if done is not None]
    assert len(runs) > len(targets) - 5
    return runs


async def surviving(place: Path) -> list[str]:
    async with open_store(place / "store.db", migrations=ALL, clock=SystemClock()) as store:
        assert await store.check() == []
        found = await store.read(keys)
        await store.write(lambda tx: tx.execute("INSERT INTO note (id) VALUES (1)"))
        return found


async def test_killed_at_any_write_it_loses_nothing_acknowledged_and_keeps_nothing_half(tmp_path: Path):
    runs = at_every_point(tmp_path, WRITES, "signal=SIGKILL")
    assert len(runs) > 60
    for place, run in runs:
        assert run.status in {-9, 128 + 9}
        found = await surviving(place)
        assert set(found) >= set(run.acknowledged), place
        # Beyond what was acknowledged only what was on its way: one batch.
        assert len(found) <= len(run.acknowledged) + 3, place


def assert_silent_after(failure: int, run: Run) -> None:
    """No acknowledgement follows the error, except of a batch that was durable before it."""
    unsynced = False
    for line in run.trace[:failure]:
        if WRITES_JOURNAL.match(line):
            unsynced = True
        elif SYNCS_JOURNAL.match(line):
            unsynced = False
    unsynced = unsynced or bool(WRITES_JOURNAL.match(run.trace[failure]))
    # A checkpoint runs while the answers of the batch before are on their way.
    late = sum('"ack ' in line for line in run.trace[failure:])
    assert late <= (0 if unsynced else 3), run.trace[failure]


def failure_in(run: Run) -> int:
    """Where in its trace the error struck; a call interrupted by another thread's line is found at its beginning."""
    struck = next(n for n, line in enumerate(run.trace) if "(INJECTED)" in line)
    thread = run.trace[struck].split()[0]
    if "resumed" not in run.trace[struck]:
        return struck
    return max(
        n for n, line in enumerate(run.trace[:struck]) if line.startswith(thread) and "unfinished" in line
    )


async def test_after_a_failed_sync_it_acknowledges_nothing_and_ends(tmp_path: Path):
    runs = at_every_point(tmp_path, SYNCS, "error=EIO")
    assert len(runs) > 15
    for place, run in runs:
        failure = failure_in(run)
        # That a directory could not be synced is ignored by SQLite itself (fdatasync), not by us (fsync).
        if not re.search(rf"fdatasync\(\d+<{place}>", run.trace[failure]):
            assert run.status == STORAGE_FAILED, run.trace[failure]
            assert_silent_after(failure, run)
        assert set(await surviving(place)) >= set(run.acknowledged), place


async def test_after_a_failed_write_it_acknowledges_nothing_and_ends(tmp_path: Path):
    runs = at_every_point(tmp_path, ("pwrite64",), "error=EIO")
    assert len(runs) > 40
    for place, run in runs:
        failure = failure_in(run)
        assert run.status != 0, run.trace[failure]
        assert_silent_after(failure, run)
        assert set(await surviving(place)) >= set(run.acknowledged), place
