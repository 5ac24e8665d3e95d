"""Real processes of iris: a controller and workers that can be killed and started again."""

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Self

from neorion.iris.client import IrisClient

# Its one scale group never gets a slice: the workers are started by hand.
CLUSTER = """
platform: {{ local: {{}} }}
controller: {{ local: {{}}, worker_timeout: {worker_timeout} }}
scale_groups:
  none:
    accelerator_type: cpu
    accelerator_variant: cpu
    num_vms: 1
    resources: {{ cpu: 4, ram: 8GB, disk: 10GB, gpu_count: 0 }}
    min_slices: 0
    max_slices: 1
    slice_template: {{ accelerator_type: cpu, accelerator_variant: cpu, num_vms: 1, local: {{ faults: {{ quota: 0 }} }} }}
"""


class Program:
    """One program that is started again and again with the same arguments. Its standard error goes to a file."""

    def __init__(self, folder: Path, *args: str, program: Sequence[str] = ("-m", "neorion.iris")) -> None:
        self._command = [sys.executable, *program, *args]
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)
        self._process: subprocess.Popen[str] | None = None

    def start(self, token: str = "") -> None:
        # Its last life's pipe, if it died by itself.
        self.kill()
        with (self.folder / "stderr").open("ab") as errors:
            self._process = subprocess.Popen(
                self._command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors, text=True
            )
        assert self._process.stdin is not None
        self._process.stdin.write(token)
        self._process.stdin.close()

    def first_line(self) -> str:
        assert self._process is not None
        assert self._process.stdout is not None
        return self._process.stdout.readline().strip()

    def kill(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            if self._process.stdout is not None:
                self._process.stdout.close()
            self._process = None

    def stop(self) -> int:
        """Asks it to end, as a supervisor does; its exit code."""
        assert self._process is not None
        self._process.terminate()
        return self.wait()

    def wait(self) -> int:
        """Until it has ended by itself; its exit code."""
        assert self._process is not None
        code = self._process.wait(timeout=120)
        self.kill()
        return code

    @property
    def pid(self) -> int:
        return self._process.pid if self._process is not None else 0

    @property
    def running(self) -> bool:
        return self._process is not None and self._process.poll() is None


class Cluster:
    """A controller and workers on this machine. Leaving ends them and everything they started."""

    def __init__(
        self, folder: Path, workers: int = 2, cpu: int = 4, *, more: str = "", worker_timeout: str = "180s"
    ) -> None:
        """`more` is added to the cluster file. Busy machines let workers be silent for long: few tests give them up sooner."""
        # A fixed port: a controller that starts again is found again.
        self._port = free_port()
        self.url = f"https://127.0.0.1:{self._port}"
        home = folder / "controller"
        home.mkdir(parents=True)
        file = home / "cluster.yaml"
        file.write_text(CLUSTER.format(worker_timeout=worker_timeout) + more)
        self.controller = Program(
            home, "local", "--folder", str(home), "--port", str(self._port), "--config", str(file)
        )
        self.workers = [
            Program(folder / f"worker-{number}", *self.worker_args(folder / f"worker-{number}", cpu))
            for number in range(workers)
        ]

    def worker_args(self, folder: Path, cpu: int = 4) -> list[str]:
        """The arguments of a worker that is started manually. Its token comes on its standard input."""
        place = ["--controller", self.url, "--folder", str(folder), "--token-stdin"]
        return ["worker", "serve", "--cpu", str(cpu), *place]

    def start_controller(self) -> None:
        self.controller.start()
        assert self.controller.first_line() == self.url, (self.controller.folder / "stderr").read_text()

    def __enter__(self) -> Self:
        self.start_controller()
        for worker in self.workers:
            self.start_worker(worker)
        return self

    def start_worker(self, worker: Program) -> None:
        worker.start((self.controller.folder / "worker.token").read_text())

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for program in (self.controller, *self.workers):
            program.kill()
        for worker in self.workers:
            for pid in processes_in(worker.folder):
                kill(pid)


@contextmanager
def cluster(
    folder: Path, workers: int = 2, worker_timeout: str = "180s"
) -> Generator[tuple[Cluster, IrisClient]]:
    with (
        Cluster(folder, workers, worker_timeout=worker_timeout) as found,
        IrisClient.remote(found.url) as client,
    ):
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


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]
