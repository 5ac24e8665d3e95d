"""A controller and workers of one's own on this machine, for as long as a client needs them."""

import os
import shutil
import subprocess
import sys
import tempfile
from contextlib import AbstractContextManager
from types import TracebackType
from typing import Final, Self

from neorion.keel.base import Invalid, Terminal

# Each is some processes, all of them on this machine.
_WORKERS_MAX: Final = 256


class EmbeddedCluster(AbstractContextManager["EmbeddedCluster"]):
    """A cluster in a process of its own and a folder that vanishes with it."""

    def __init__(self, workers: int) -> None:
        _check(workers)
        from neorion.keel.cli.kit import require_extra  # noqa: PLC0415 -- a client of a remote cluster does not need it

        require_extra("server")
        self._workers = workers
        # Not one that vanishes by itself: that would also vanish at the end of a fork of this process.
        self._folder = tempfile.mkdtemp(prefix=f"iris-{os.getpid()}-")
        self._process: subprocess.Popen[str] | None = None
        self.url = ""

    def __enter__(self) -> Self:
        command = [sys.executable, "-P", "-m", "neorion.iris", "local", "--leash", "--port", "0"]
        command += ["--folder", self._folder, "--workers", str(self._workers)]
        # Its standard input is a leash: when this process ends, however it ends, the other sees the end of it and goes.
        self._process = subprocess.Popen(  # noqa: S603 -- our own program
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            # Ctrl-C is for whoever waits here, and so is a notebook's interrupt: the cluster has other jobs.
            start_new_session=True,
        )
        try:
            self.url = _read_url(self._process)
        except BaseException:
            # Ctrl-C too: a cluster that nobody got is ended by nobody else.
            self.__exit__(None, None, None)
            raise
        return self

    def check(self) -> None:
        """Nobody starts it again when it has ended."""
        code = self._process.poll() if self._process is not None else 0
        if code is not None:
            raise Terminal(
                "iris.embedded_ended",
                f"The local cluster has ended, {f'by signal {-code}' if code < 0 else f'with exit code {code}'}.",
                hint="Make another client and submit again: its jobs ended with it.",
            )

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._process is not None:
            self._process.terminate()
            self._process.communicate()
        shutil.rmtree(self._folder, ignore_errors=True)


def _read_url(process: "subprocess.Popen[str]") -> str:
    """Where it answers."""
    assert process.stdout is not None  # noqa: S101 -- a pipe was asked for
    if url := process.stdout.readline().strip():
        return url
    raise Terminal(
        "iris.embedded",
        "The local cluster did not start.",
        hint="See why in its output above.",
    )


def _check(workers: object) -> None:
    if not isinstance(workers, int) or not 1 <= workers <= _WORKERS_MAX:
        raise Invalid(
            "iris.workers",
            f"A cluster on one machine has between 1 and {_WORKERS_MAX} workers, not {workers!r:.80}.",
            hint="Leave it out for 2.",
        )
