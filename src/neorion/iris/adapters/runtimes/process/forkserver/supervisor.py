"""The fork server's parent: holds the lease and outlives the fork server, to end what must not go on.

It touches no disk and speaks to nobody, so nothing that can happen to the fork server keeps it from its two duties: when the
lease runs out every task is killed, and when the fork server dies nothing of its tasks is left.
"""

import mmap
import os
import select

from neorion.iris.adapters.runtimes.process import procfs
from neorion.iris.adapters.runtimes.process.syscalls import boottime_ns

# More than any lease, and less than poll can take.
_SLEEP_MAX_MS = 3_600_000


class SharedLease:
    """Until when tasks may run, in memory that the guardian and the fork server share. Over until it is first renewed."""

    def __init__(self) -> None:
        self._page = mmap.mmap(-1, mmap.PAGESIZE)
        self._until = memoryview(self._page).cast("q")
        self.bell, self._ring = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)

    def hide_from_children(self) -> None:
        """From here on no child of this process inherits the page: a task must not write its own lease."""
        self._page.madvise(mmap.MADV_DONTFORK)

    def renew(self, until: int) -> None:
        # The guardian sleeps until the time it knows of, and without an end while there is nothing to guard.
        too_late = self.over or until < self._until[0]
        self._until[0] = until
        if too_late:
            os.write(self._ring, b"!")

    @property
    def left_ns(self) -> int:
        return max(0, self._until[0] - boottime_ns())

    @property
    def over(self) -> bool:
        return self.left_ns == 0


def supervise(server: int, lease: SharedLease) -> None:
    """Returns when the fork server and everything below it is gone."""
    handle = os.pidfd_open(server)
    poll = select.poll()
    poll.register(handle, select.POLLIN)
    poll.register(lease.bell, select.POLLIN)
    while handle not in (ready := dict(poll.poll(_timeout_ms(lease)))):
        if lease.bell in ready:
            os.read(lease.bell, 4096)
        elif lease.over:
            procfs.kill([server], spare=[server])
    _clear()


def _timeout_ms(lease: SharedLease) -> float | None:
    return None if lease.over else min(lease.left_ns / 1e6 + 1, _SLEEP_MAX_MS)


def _clear() -> None:
    """Orphans of the fork server are children of this process: all are killed and buried, theirs too."""
    while True:
        procfs.kill(procfs.children(os.getpid()))
        try:
            os.wait()
            # All that have ended, before the next look: it takes the longer the more of them there are.
            while os.waitpid(-1, os.WNOHANG)[0]:
                continue
        except ChildProcessError:
            return
