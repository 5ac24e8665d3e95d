"""Real processes of iris: a controller and workers that can be killed and started again."""

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Self

from neorion.iris.client import IrisClient


class Program:
    """One program that is started again and again with the same arguments. Its standard error goes to a file."""

    def __init__(self, folder: Path, *args: str) -> None:
        self._command = [sys.executable, "-m", "neorion.iris", *args, "--folder", str(folder)]
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)
        self._process: subprocess.Popen[str] | None = None

    def start(self) -> None:
        # Its last life's pipe, if it died by itself.
        self.kill()
        with (self.folder / "stderr").open("ab") as errors:
            self._process = subprocess.Popen(self._command, stdout=subprocess.PIPE, stderr=errors, text=True)

    def first_line(self) -> str:
        assert self._process is not None
        assert self._process.stdout is not None
        return self._process.stdout.readline().strip()

    def kill(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.communicate()
            self._process = None

    @property
    def pid(self) -> int:
        return self._process.pid if self._process is not None else 0

    @property
    def running(self) -> bool:
        return self._process is not None and self._process.poll() is None


class Cluster:
    """A controller and workers on this machine. Leaving ends them and everything they started."""

    def __init__(self, folder: Path, workers: int = 2, cpu: int = 4) -> None:
        # A fixed port: a controller that starts again is found again.
        self._port = _free_port()
        self.url = f"http://127.0.0.1:{self._port}"
        self.controller = Program(folder / "controller", "controller", "--port", str(self._port))
        self.workers = [
            Program(folder / f"worker-{number}", "worker", "--controller", self.url, "--cpu", str(cpu))
            for number in range(workers)
        ]

    def start_controller(self) -> None:
        self.controller.start()
        assert self.controller.first_line() == self.url, (self.controller.folder / "stderr").read_text()

    def __enter__(self) -> Self:
        self.start_controller()
        for worker in self.workers:
            worker.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for program in (self.controller, *self.workers):
            program.kill()
        for worker in self.workers:
            for pid in processes_in(worker.folder):
                kill(pid)


@contextmanager
def cluster(folder: Path, workers: int = 2) -> Generator[tuple[Cluster, IrisClient]]:
    with Cluster(folder, workers) as found, IrisClient.remote(found.url) as client:
        yield found, client


def processes_in(folder: Path) -> list[int]:
    """Processes that name this folder in their arguments or work in it: fork servers, guardians and tasks."""
    found: list[int] = []
    for entry in Path("/proc").iterdir():
        if not entry.name.isdecimal() or int(entry.name) == os.getpid():
            continue
        try:
            command = (entry / "cmdline").read_bytes().decode(errors="replace")
            place = str((entry / "cwd").readlink())
        except OSError:
            continue
        if str(folder) in command or place.startswith(str(folder)):
            found.append(int(entry.name))
    return sorted(found)


def kill(pid: int) -> None:
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        return


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]
