"""Process table: starts, signals and reaps task processes and their orphans."""

import os
import signal
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace

from neorion.iris.adapters.runtimes.process import cgroups, procfs
from neorion.iris.adapters.runtimes.process.environ import TaskStartError
from neorion.iris.adapters.runtimes.process.forkserver import spawn
from neorion.iris.adapters.runtimes.process.forkserver.attempt import AttemptProcess, ExitStatus, read_status
from neorion.iris.adapters.runtimes.process.forkserver.event_loop import SelectorLoop
from neorion.iris.adapters.runtimes.process.forkserver.warm_pool import WarmPool, WarmProcess, gpus_of, key_of
from neorion.iris.adapters.runtimes.process.protocol import StartRequest
from neorion.iris.adapters.runtimes.process.syscalls import boottime_ns
from neorion.iris.adapters.runtimes.process.task.main import RUNNING, ForkServerInfo, PreparedTask
from neorion.iris.ports import Phase
from neorion.keel.telemetry import logger

log = logger(__name__)

# A process that survives SIGKILL for this long hangs in the kernel. Its attempt is then reported as ended.
REAP_TIMEOUT_NS = 5_000_000_000


class ProcessTable:
    """Table of all children of the fork server: those that it started, and adopted orphans."""

    def __init__(
        self,
        host: ForkServerInfo,
        loop: SelectorLoop,
        began: Callable[[AttemptProcess], None],
        again: Callable[[AttemptProcess], None],
    ) -> None:
        """`began` is called for attempts whose preparation is over, `again` for those that need another process."""
        self._host = host
        self._groups = cgroups.CgroupCache(host.groups) if host.groups is not None else None
        self._loop = loop
        self._began = began
        self._again = again
        self._mains: dict[int, AttemptProcess | WarmProcess] = {}
        self._spawned: dict[int, AttemptProcess] = {}
        self._pools = WarmPool(loop, self._on_pool_code)
        self._pools_made = 0
        # Attempts whose task has ended, with the latest time of their report even if processes are left.
        self._ending: dict[AttemptProcess, tuple[ExitStatus, int]] = {}
        self._ended: list[tuple[AttemptProcess, ExitStatus]] = []

    def start(self, jobs: Mapping[AttemptProcess, StartRequest]) -> dict[AttemptProcess, TaskStartError]:
        """Starts attempts. Returns those that could not start, with the reason.

        All are prepared before the first fork, because memory touched between two forks is copied again.
        """
        failed: dict[AttemptProcess, TaskStartError] = {}
        forks: list[tuple[AttemptProcess, PreparedTask]] = []
        for attempt, job in jobs.items():
            self._pools.free_gpus(job)
            try:
                if (job.pool and not job.argv) or spawn.can_spawn(job):
                    self._start_at_once(attempt, job)
                else:
                    attempt.group = self._groups.take(job.limits) if self._groups and job.limited else ""
                    forks.append((attempt, spawn.prepare(job, self._host, attempt.group)))
            except TaskStartError as refusal:
                failed[attempt] = refusal
            except OSError as error:
                failed[attempt] = TaskStartError(0, f"The worker could not set it up: {error.strerror}.")
        pids = [spawn.fork(one, self._host) for _, one in forks]
        for (attempt, one), pid in zip(forks, pids, strict=True):
            os.close(one.log)
            if one.begun >= 0:
                os.close(one.begun)
            if isinstance(pid, TaskStartError):
                failed[attempt] = pid
            else:
                self._started(attempt, pid, one.started)
        for attempt in failed:
            self._remove(attempt.group)
        return failed

    def terminate(self, attempt: AttemptProcess) -> None:
        procfs.send(procfs.below([attempt.pid]), signal.SIGTERM)

    def kill(self, attempts: Iterable[AttemptProcess]) -> None:
        begun = [attempt for attempt in attempts if attempt.pid]
        self._kill_groups(begun)
        # A process may leave its group, and there may be no groups at all.
        procfs.kill([attempt.pid for attempt in begun])

    def _kill_groups(self, attempts: Iterable[AttemptProcess]) -> None:
        for attempt in attempts:
            if attempt.group and self._groups is not None:
                self._groups.kill(attempt.group)

    def reap(self) -> list[tuple[AttemptProcess, ExitStatus]]:
        """Reaps ended processes, kills what is left of their attempts, and returns the attempts that have ended completely."""
        for pid, ending in _wait_all():
            self._spawned.pop(pid, None)
            main = self._mains.pop(pid, None)
            attempt = self._end_of_pool(main) if isinstance(main, WarmProcess) else main
            if attempt is not None:
                self._ending[attempt] = (self._with_memory(attempt, ending), boottime_ns() + REAP_TIMEOUT_NS)
        if self._ending:
            self._clear()
        ended, self._ended = self._ended, []
        return ended

    def _start_at_once(self, attempt: AttemptProcess, job: StartRequest) -> None:
        fd = spawn.open_log(self._host.files.attempt(attempt.id))
        try:
            if job.pool:
                self._start_warm(attempt, job, fd)
            else:
                pid = spawn.spawn(job, self._host, fd)
                self._spawned[pid] = attempt
                self._started(attempt, pid)
        finally:
            os.close(fd)

    def _start_warm(self, attempt: AttemptProcess, job: StartRequest, fd: int) -> None:
        attempt.warm = True
        key = key_of(job)
        warm = self._pools.take(key)
        while warm is not None:
            try:
                self._pools.assign(warm, attempt, job)
            except OSError:
                # It ended while it was idle, so the next one is used.
                self._pools.remove(warm)
                warm = self._pools.take(key)
            else:
                attempt.pid, attempt.phase = warm.pid, Phase.RUNNING
                attempt.group = warm.group if job.limited else ""
                return
        self._pools_made += 1
        group = f"pool-{self._host.pid}-{self._pools_made}"
        if self._host.groups is not None and job.limited:
            attempt.group = group
            self._host.groups.make(group, job.limits)
        pid, channel = spawn.fork_pool(self._host, group, fd)
        warm = WarmProcess(pid, key, group, channel, gpus_of(job))
        self._mains[pid] = warm
        self._pools.add(warm)
        self._pools.assign(warm, attempt, job)
        attempt.pid, attempt.phase = pid, Phase.BUILDING if job.prepares else Phase.RUNNING

    def _started(self, attempt: AttemptProcess, pid: int, started: int = -1) -> None:
        """Registers a started process. `started` is a pipe that signals the end of its preparation, or -1."""
        self._mains[pid] = attempt
        attempt.pid, attempt.phase = pid, Phase.RUNNING
        if started >= 0:
            attempt.phase = Phase.BUILDING
            self._loop.watch(started, lambda: self._prepared(attempt, started))

    def _prepared(self, attempt: AttemptProcess, started: int) -> None:
        """Handles a byte on the pipe (the task begins) or its end (the process has ended, which `reap` sees)."""
        if os.read(started, 1):
            self._began(attempt)
        self._loop.unwatch(started)
        os.close(started)

    def _on_pool_code(self, warm: WarmProcess, code: int) -> None:
        attempt = warm.attempt
        if attempt is None:
            return
        if code == RUNNING:
            warm.begun = True
            if attempt.phase is Phase.BUILDING:
                self._began(attempt)
            return
        self._ended.append((attempt, ExitStatus(code)))
        self._pools.mark_idle(warm)

    def _end_of_pool(self, warm: WarmProcess) -> AttemptProcess | None:
        # Messages sent before its end count first, because its last attempt may have succeeded.
        self._pools.read(warm)
        self._pools.remove(warm)
        if warm.attempt is None:
            self._remove(warm.group)
        self._host.files.discard(f"{self._host.files.pools}/{warm.group}")
        if warm.attempt is not None and warm.attempt.cause is None and warm.proven and not warm.begun:
            # It was killed while it was idle, just before the attempt was assigned to it.
            self._again(warm.attempt)
            return None
        return warm.attempt

    def _with_memory(self, attempt: AttemptProcess, ending: ExitStatus) -> ExitStatus:
        groups = self._host.groups
        if groups is None or not attempt.group or not (ending.code or ending.signal):
            return ending
        return replace(ending, out_of_memory=groups.ran_out_of_memory(attempt.group))

    def _clear(self) -> None:
        left = self._orphans()
        now = boottime_ns()
        if left:
            # For processes that fork faster than the scan, and for those that outlive their main process.
            self._kill_groups(self._ending)
            procfs.kill(left)
        for attempt, (ending, latest) in list(self._ending.items()):
            if left and now < latest:
                continue
            if left:
                log.error("killed and still there", attempt=attempt.id, pids=sorted(left))
            del self._ending[attempt]
            self._remove(attempt.group)
            self._ended.append((attempt, ending))
        if self._ending:
            self._loop.after(REAP_TIMEOUT_NS, lambda: None)

    def _remove(self, group: str) -> None:
        if group and self._groups is not None:
            self._groups.release(group)

    def _orphans(self) -> set[int]:
        """Adopted orphans among the children, except those of attempts that still run."""
        orphans = procfs.children(os.getpid()) - self._mains.keys()
        if not orphans or not self._spawned:
            return orphans
        running = {attempt.id for attempt in self._spawned.values()}
        return {pid for pid in orphans if not self._belongs(pid, running)}

    def _belongs(self, pid: int, running: set[str]) -> bool:
        process = procfs.read(pid)
        return process is not None and (process.session in self._spawned or procfs.owner(pid) in running)


def _wait_all() -> Iterator[tuple[int, ExitStatus]]:
    while True:
        try:
            pid, status, usage = os.wait4(-1, os.WNOHANG)
        except ChildProcessError:
            return
        if pid == 0:
            return
        yield pid, read_status(status, usage)
