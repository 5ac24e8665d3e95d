"""Supervisor: parent of the fork server that enforces the lease and outlives the fork server.

It uses no disk and no connection, so that failures of the fork server cannot affect its two duties. When the
lease ends it kills every task, and when the fork server exits it kills all processes of its tasks.
"""

import mmap
import os
import select

from neorion.iris.adapters.runtimes.process import procfs
from neorion.iris.adapters.runtimes.process.syscalls import boottime_ns

# Longer than any lease, and shorter than the limit of poll.
_SLEEP_MAX_MS = 3_600_000


class SharedLease:
    """End of the lease, in memory shared by the supervisor and the fork server. The lease is over until it is renewed."""

    def __init__(self) -> None:
        self._page = mmap.mmap(-1, mmap.PAGESIZE)
        self._until = memoryview(self._page).cast("q")
        self.wake_fd, self._wake_write_fd = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)

    def hide_from_children(self) -> None:
        """Hides the page from future children, so that a task cannot change its own lease."""
        self._page.madvise(mmap.MADV_DONTFORK)

    def renew(self, until: int) -> None:
        # The supervisor sleeps until the end of the lease that it knows, or without limit if there is none.
        too_late = self.over or until < self._until[0]
        self._until[0] = until
        if too_late:
            os.write(self._wake_write_fd, b"!")

    @property
    def left_ns(self) -> int:
        return max(0, self._until[0] - boottime_ns())

    @property
    def over(self) -> bool:
        return self.left_ns == 0


def supervise(server: int, lease: SharedLease) -> None:
    """Returns when the fork server and all its descendants have ended."""
    handle = os.pidfd_open(server)
    poll = select.poll()
    poll.register(handle, select.POLLIN)
    poll.register(lease.wake_fd, select.POLLIN)
    while handle not in (ready := dict(poll.poll(_timeout_ms(lease)))):
        if lease.wake_fd in ready:
            os.read(lease.wake_fd, 4096)
        elif lease.over:
            procfs.kill([server], spare=[server])
    _clear()


def _timeout_ms(lease: SharedLease) -> float | None:
    return None if lease.over else min(lease.left_ns / 1e6 + 1, _SLEEP_MAX_MS)


def _clear() -> None:
    """Kills and reaps all orphans of the fork server, which are children of this process."""
    while True:
        procfs.kill(procfs.children(os.getpid()))
        try:
            os.wait()
            # Reaps all ended ones before the next scan, which takes longer the more processes there are.
            while os.waitpid(-1, os.WNOHANG)[0]:
                continue
        except ChildProcessError:
            return
