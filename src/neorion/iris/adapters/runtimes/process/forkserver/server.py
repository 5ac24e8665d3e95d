"""Fork server: handles requests of the worker, and records and reports the states of attempts."""

import os
import signal
from collections import deque
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

from neorion.iris.adapters.runtimes.process.forkserver.attempt import AttemptProcess, verdict
from neorion.iris.adapters.runtimes.process.forkserver.dir_cache import AttemptDirCache
from neorion.iris.adapters.runtimes.process.forkserver.event_loop import SelectorLoop, Timer
from neorion.iris.adapters.runtimes.process.forkserver.exit_log import ExitLog
from neorion.iris.adapters.runtimes.process.forkserver.listener import WorkerListener
from neorion.iris.adapters.runtimes.process.forkserver.process_reaper import ProcessTable
from neorion.iris.adapters.runtimes.process.forkserver.supervisor import SharedLease
from neorion.iris.adapters.runtimes.process.log_files import LogTrimmer
from neorion.iris.adapters.runtimes.process.protocol import (
    AttemptReport,
    ExitInfo,
    Forget,
    Refusal,
    Renew,
    Reply,
    Request,
    Start,
    StartRequest,
    Stop,
)
from neorion.iris.adapters.runtimes.process.result_file import read_head
from neorion.iris.adapters.runtimes.process.syscalls import boottime_ns
from neorion.iris.adapters.runtimes.process.task.main import ForkServerInfo
from neorion.iris.ports import ExitKind, Phase
from neorion.keel.base import Invalid
from neorion.keel.telemetry import logger

log = logger(__name__)

# New processes per turn of the loop, which also checks ends, limits and the lease.
LAUNCHES_PER_TURN = 16
# A fork server without a worker exits after this.
LINGER_NS = 30_000_000_000
# Delay of the report of a start: most short tasks end before it, and then only the end is reported.
BEGINNING_NS = 5_000_000
# Long enough for packages from a slow index and for setup scripts; a build that hangs is ended.
BUILD_LIMIT_NS = 30 * 60 * 1_000_000_000
# Time from SIGTERM at the run limit to SIGKILL: the same as for a cancelled task, e.g. for a checkpoint.
RUN_GRACE_NS = 10 * 1_000_000_000

# Pause before the next write to a full disk.
RETRY_NS = 1_000_000_000

_LEASE_OVER = ExitInfo(
    ExitKind.LOST, 0, "The worker had no contact to its controller for longer than its lease."
)
_TIMED_OUT = ExitInfo(ExitKind.TIMED_OUT, 0, "It ran for longer than its limit.")
_BUILT_TOO_LONG = ExitInfo(ExitKind.NOT_STARTED, 0, "Its environment was not built within 30 minutes.")
_STOPPED = ExitInfo(ExitKind.STOPPED)
_VANISHED = ExitInfo(ExitKind.LOST, 0, "The fork server ended while it ran.")
_RESULT_LOST = ExitInfo(ExitKind.LOST, 0, "Its result was lost when the machine stopped.")


class ForkServer:
    """Fork server with one thread and one event loop."""

    def __init__(self, host: ForkServerInfo, lease: SharedLease) -> None:
        self._files = host.files
        self._lease = lease
        self._loop = SelectorLoop()
        self._journal = ExitLog(self._files.journal)
        self._dir_cache = AttemptDirCache(str(self._files.spare))
        self._attempts: dict[str, AttemptProcess] = {}
        self._live: dict[str, AttemptProcess] = {}
        self._waiting: dict[AttemptProcess, StartRequest] = {}
        self._ended: list[AttemptProcess] = []
        # Started attempts, with the time at which the start is reported.
        self._fresh = deque[tuple[int, AttemptProcess]]()
        self._processes = ProcessTable(host, self._loop, self._began, self._again)
        self._log_trimmer = LogTrimmer(self._loop.after)
        self._loop.watch(self._log_trimmer.fd, self._log_trimmer.read)
        self._lingers = True
        self._lease_timer: Timer = self._loop.after(LINGER_NS, self._stop_lingering)
        self._recover()
        self._wake_on_children()
        self._listener = WorkerListener(self._files.socket, self._loop, self._states, self._handle)

    def run(self) -> None:
        """Runs until the worker has disconnected, its lease is over, and no task runs."""
        while self._listener.open or self._live or not self._lease.over or self._lingers:
            self._loop.turn(wait=not self._waiting)
            self._check_lease()
            self._launch()
            for attempt, ending in self._processes.reap():
                self._end(attempt, verdict(attempt, self._files.attempt(attempt.id), ending))
            self._report()

    def _report(self) -> None:
        """Writes ends, then reports them. While the disk is full, reports wait."""
        try:
            self._journal.write()
        except OSError as error:
            log.warning("the ends of attempts cannot be written", why=error.strerror)
            self._loop.after(RETRY_NS, lambda: None)
        else:
            for attempt in (*self._due(), *self._ended):
                self._listener.report(attempt.state)
            self._ended.clear()
        self._listener.flush()

    def _due(self) -> Iterator[AttemptProcess]:
        now = boottime_ns()
        while self._fresh and self._fresh[0][0] <= now:
            _, attempt = self._fresh.popleft()
            if attempt.ended is None and attempt.reported is not attempt.phase:
                attempt.reported = attempt.phase
                yield attempt

    def _recover(self) -> None:
        """Loads the attempts of an earlier fork server: recorded ends, and all others as lost."""
        for pool in self._files.pools.iterdir():
            self._files.discard(str(pool))
        ends = self._journal.ends
        known = {path.name for path in self._files.attempts.iterdir()}
        for forgotten in ends.keys() - known:
            self._journal.forget(forgotten)
        for name in sorted(known):
            attempt = self._attempts[name] = AttemptProcess(name)
            ended = ends.get(name, _VANISHED)
            if ended.result and not self._has_complete_result(name):
                ended = _RESULT_LOST
            attempt.end(ended)
            if ends.get(name) != ended:
                self._journal.append(name, ended, durable=True)
        self._journal.write()

    def _has_complete_result(self, attempt: str) -> bool:
        try:
            read_head(Path(self._files.attempt(attempt).result))
        except (OSError, Invalid):
            return False
        return True

    def _wake_on_children(self) -> None:
        reading, writing = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        signal.set_wakeup_fd(writing, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda _number, _frame: None)
        self._loop.watch(reading, lambda: _drain(reading))

    def _stop_lingering(self) -> None:
        self._lingers = False

    def _states(self) -> list[AttemptReport]:
        return [attempt.state for attempt in self._attempts.values()]

    def _handle(self, request: Request) -> Reply:
        match request:
            case Start(id_, job):
                return Reply(id_, self._start(job))
            case Stop(id_, attempt, grace_ns):
                return Reply(id_, self._stop(attempt, grace_ns))
            case Forget(id_, attempts):
                return Reply(id_, self._forget(attempts))
            case Renew(id_, until_ns):
                self._renew(until_ns)
                return Reply(id_)

    def _start(self, job: StartRequest) -> Refusal:
        if job.attempt in self._attempts:
            return Refusal.NONE
        if self._lease.over:
            return Refusal.NO_LEASE
        try:
            self._dir_cache.make(self._files.attempt(job.attempt))
        except OSError:
            return Refusal.NO_DISK
        attempt = self._attempts[job.attempt] = AttemptProcess(job.attempt, job)
        self._live[attempt.id] = attempt
        self._waiting[attempt] = job
        return Refusal.NONE

    def _stop(self, name: str, grace_ns: int) -> Refusal:
        attempt = self._attempts.get(name)
        if attempt is None:
            return Refusal.UNKNOWN
        if attempt.ended is None and attempt.cause is None:
            attempt.cause = _STOPPED
            if self._waiting.pop(attempt, None) is not None:
                self._end(attempt, _STOPPED)
            else:
                self._finish(attempt, grace_ns)
        return Refusal.NONE

    def _finish(self, attempt: AttemptProcess, grace_ns: int) -> None:
        """Sends SIGTERM and, after the grace, SIGKILL."""
        if grace_ns:
            self._processes.terminate(attempt)
            attempt.timers.append(self._loop.after(grace_ns, lambda: self._processes.kill([attempt])))
        else:
            self._processes.kill([attempt])

    def _forget(self, names: list[str]) -> Refusal:
        known = [attempt for name in names if (attempt := self._attempts.get(name)) is not None]
        if any(attempt.ended is None for attempt in known):
            return Refusal.NOT_ENDED
        for attempt in known:
            place = self._files.attempt(attempt.id)
            if attempt.warm:
                # A child may still write to the log. The folder is reused, but this file is not.
                Path(place.log).unlink(missing_ok=True)
            self._files.discard(place.home)
            self._journal.forget(attempt.id)
            self._attempts.pop(attempt.id, None)
        return Refusal.NONE

    def _renew(self, until_ns: int) -> None:
        self._lingers = False
        self._lease.renew(until_ns)
        self._lease_timer.cancel()
        self._lease_timer = self._loop.after(self._lease.left_ns, lambda: None)

    def _check_lease(self) -> None:
        """Ends attempts after the lease. Before `reap`, so that attempts killed by the supervisor count as lost."""
        if self._lease.over and self._live:
            fresh = [attempt for attempt in self._live.values() if attempt.cause is not _LEASE_OVER]
            for attempt in fresh:
                attempt.cause = _LEASE_OVER
            self._processes.kill(fresh)
            for attempt in self._waiting:
                self._end(attempt, _LEASE_OVER)
            self._waiting.clear()

    def _launch(self) -> None:
        jobs = dict(islice(self._waiting.items(), LAUNCHES_PER_TURN))
        if not jobs:
            return
        failed = self._processes.start(jobs)
        for attempt, job in jobs.items():
            del self._waiting[attempt]
            if (refusal := failed.get(attempt)) is not None:
                self._end(attempt, ExitInfo(ExitKind.NOT_STARTED, refusal.code, refusal.sentence))
                continue
            self._log_trimmer.add(self._files.attempt(attempt.id).log)
            self._announce_start(attempt)
            if attempt.phase is Phase.RUNNING:
                self._limit(attempt, job.run_limit_ns, _TIMED_OUT, RUN_GRACE_NS)
            else:
                self._limit(attempt, BUILD_LIMIT_NS, _BUILT_TOO_LONG)

    def _began(self, attempt: AttemptProcess) -> None:
        if attempt.ended is None and attempt.job is not None:
            attempt.phase = Phase.RUNNING
            self._announce_start(attempt)
            attempt.cancel_timers()
            self._limit(attempt, attempt.job.run_limit_ns, _TIMED_OUT, RUN_GRACE_NS)

    def _again(self, attempt: AttemptProcess) -> None:
        if attempt.job is not None:
            attempt.cancel_timers()
            attempt.pid, attempt.phase = 0, Phase.BUILDING
            self._waiting[attempt] = attempt.job

    def _announce_start(self, attempt: AttemptProcess) -> None:
        self._fresh.append((boottime_ns() + BEGINNING_NS, attempt))
        if len(self._fresh) == 1:
            self._loop.after(BEGINNING_NS, self._wake_for_starts)

    def _wake_for_starts(self) -> None:
        """Wakes the loop, which reports due starts, until all are reported."""
        if self._fresh:
            self._loop.after(BEGINNING_NS, self._wake_for_starts)

    def _limit(self, attempt: AttemptProcess, span_ns: int, cause: ExitInfo, grace_ns: int = 0) -> None:
        def over() -> None:
            if attempt.cause is None:
                attempt.cause = cause
                self._finish(attempt, grace_ns)

        if span_ns:
            attempt.timers.append(self._loop.after(span_ns, over))

    def _end(self, attempt: AttemptProcess, ended: ExitInfo) -> None:
        attempt.end(ended)
        del self._live[attempt.id]
        self._log_trimmer.remove(self._files.attempt(attempt.id).log)
        self._journal.append(attempt.id, ended, durable=attempt.precious)
        self._ended.append(attempt)


def _drain(fd: int) -> None:
    try:
        while os.read(fd, 4096):
            continue
    except BlockingIOError:
        return
