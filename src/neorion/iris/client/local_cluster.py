"""Local cluster: a controller and workers on this machine that live as long as a client."""

import os
import shutil
import subprocess
import sys
import tempfile
from contextlib import AbstractContextManager
from types import TracebackType
from typing import Final, Self

from neorion.keel.base import Invalid, Terminal

# Each worker is several processes on this machine.
_WORKERS_MAX: Final = 256


class EmbeddedCluster(AbstractContextManager["EmbeddedCluster"]):
    """Cluster in a separate process, with a folder that is removed at its end."""

    def __init__(self, workers: int) -> None:
        _check(workers)
        from neorion.keel.cli.kit import require_extra  # noqa: PLC0415 -- a client of a remote cluster does not need it

        require_extra("server")
        self._workers = workers
        # Not `TemporaryDirectory`: the exit of a forked process would also remove the folder.
        self._folder = tempfile.mkdtemp(prefix=f"iris-{os.getpid()}-")
        self._process: subprocess.Popen[str] | None = None
        self.url = ""

    def __enter__(self) -> Self:
        command = [sys.executable, "-P", "-m", "neorion.iris", "local", "--leash", "--port", "0"]
        command += ["--folder", self._folder, "--workers", str(self._workers)]
        # Its standard input is a pipe. When this process ends in any way, the cluster reads its end and exits.
        self._process = subprocess.Popen(  # noqa: S603 -- our own program
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            # Ctrl-C and the interrupt of a notebook stop the waiting caller; the cluster has other jobs.
            start_new_session=True,
        )
        try:
            self.url = _read_url(self._process)
        except BaseException:
            # Also after Ctrl-C, because no other code can end a cluster that was not returned.
            self.__exit__(None, None, None)
            raise
        return self

    def check(self) -> None:
        """Raises if the cluster has ended, because it is not restarted."""
        code = self._process.poll() if self._process is not None else 0
        if code is not None:
            raise Terminal(
                "iris.embedded_ended",
                f"The local cluster has ended, {f'by signal {-code}' if code < 0 else f'with exit code {code}'}.",
                hint="Make another client and submit the jobs again.",
            )

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._process is not None:
            self._process.terminate()
            self._process.communicate()
        shutil.rmtree(self._folder, ignore_errors=True)


def _read_url(process: "subprocess.Popen[str]") -> str:
    """Reads the URL that the cluster prints when it is ready."""
    assert process.stdout is not None  # noqa: S101 -- a pipe was asked for
    if url := process.stdout.readline().strip():
        return url
    raise Terminal(
        "iris.embedded",
        "The local cluster did not start.",
        hint="See the output above.",
    )


def _check(workers: object) -> None:
    if not isinstance(workers, int) or not 1 <= workers <= _WORKERS_MAX:
        raise Invalid(
            "iris.workers",
            f"A local cluster has between 1 and {_WORKERS_MAX} workers, not {workers!r:.80}.",
            hint="Omit `workers` to get the default of 2.",
        )
