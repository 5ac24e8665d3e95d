"""Starts a fork server below a supervisor, detached from its caller."""

import fcntl
import gc
import logging
import os
import resource
import signal
import sys
from pathlib import Path
from types import ModuleType

from neorion.iris.adapters.runtimes.process import cgroups, environ, syscalls
from neorion.iris.adapters.runtimes.process.forkserver.server import ForkServer
from neorion.iris.adapters.runtimes.process.forkserver.supervisor import SharedLease, supervise
from neorion.iris.adapters.runtimes.process.layout import RuntimeLayout
from neorion.iris.adapters.runtimes.process.task.main import ForkServerInfo
from neorion.keel.telemetry.log import FIELDS

# Files of tasks are readable by all users with access to the runtime's directory, and writable by their owner.
UMASK = 0o022


def daemonize(root: Path) -> int:
    """Returns when the fork server listens, with the exit code for the caller."""
    files = RuntimeLayout(root)
    files.make()
    listening, ready = os.pipe2(os.O_CLOEXEC)
    if os.fork():
        os.close(ready)
        return 0 if os.read(listening, 1) else 1
    os.close(listening)
    os.setsid()
    _run_supervisor(files, ready)
    return 0


def _run_supervisor(files: RuntimeLayout, ready: int) -> None:
    lock = os.open(files.lock, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600)
    # An earlier supervisor holds the lock until all its tasks have ended, so lost attempts have really ended.
    fcntl.flock(lock, fcntl.LOCK_EX)
    _setup_logging()
    groups = cgroups.find()
    lease = SharedLease()
    syscalls.set_child_subreaper()
    supervisor = os.getpid()
    server = os.fork()
    if server:
        os.close(ready)
        # A service manager signals all processes of a service, and the supervisor must exit last.
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        supervise(server, lease)
        if groups is not None:
            groups.sweep()
        return
    syscalls.set_pdeathsig(supervisor)
    lease.hide_from_children()
    _serve(ForkServerInfo(os.getpid(), files, groups), lease, ready)


def _serve(host: ForkServerInfo, lease: SharedLease, ready: int) -> None:
    syscalls.set_child_subreaper()
    # State that every child inherits.
    os.chdir("/")
    os.umask(UMASK)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    os.environ.clear()
    os.environ.update(environ.BASE)
    sys.modules["__main__"] = ModuleType("__main__")
    sys.argv = ["iris-task"]
    sys.stdout.reconfigure(line_buffering=True)  # pyright: ignore[reportAttributeAccessIssue, reportUnknownMemberType] -- a text stream at this point
    server = ForkServer(host, lease)
    # Each task's exit closes all handlers of logging, which must not include these.
    logging._handlerList.clear()  # noqa: SLF001  # pyright: ignore[reportAttributeAccessIssue, reportUnknownMemberType] -- there is no public name
    gc.collect()
    # The collector does not touch objects of its permanent generation, so their pages are not copied.
    gc.freeze()
    os.write(ready, b"!")
    os.close(ready)
    server.run()


def _setup_logging() -> None:
    """Logs the fork server's own messages to its file. Tasks get Python's default logging."""
    handler = logging.StreamHandler()
    handler.setFormatter(_Plain("%(asctime)s %(levelname)s %(name)s %(message)s"))
    own = logging.getLogger(__name__.removeprefix("neorion.").rpartition(".")[0])
    own.addHandler(handler)
    own.propagate = False


class _Plain(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        fields: dict[str, object] = getattr(record, FIELDS, {})
        return " ".join((super().format(record), *(f"{name}={value}" for name, value in fields.items())))
