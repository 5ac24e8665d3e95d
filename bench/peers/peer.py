import json
import subprocess
from contextlib import AbstractContextManager
from pathlib import Path
from types import TracebackType
from typing import Self

from bench.peers.environment import HERE, Absent, python_of


class Peer(AbstractContextManager["Peer"]):
    """Another system, asked over standard input and answering over standard output, a line of JSON each."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._log = Path(f"/tmp/bench-{name}.log")  # noqa: S108 -- overwritten by the next run
        script = HERE / "sides" / f"{name.replace('-', '_')}.py"
        self._command = [str(python_of(name)), str(script)]
        self._process: subprocess.Popen[str] | None = None

    def __enter__(self) -> Self:
        with self._log.open("w") as errors:
            self._process = subprocess.Popen(
                self._command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors, text=True
            )
        self._answer()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._process is not None
        assert self._process.stdin is not None
        self._process.stdin.close()
        try:
            self._process.wait(30)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def seconds(self, work: str, count: int = 1) -> float:
        """How long the peer took for so much of this work, by its own clock."""
        assert self._process is not None
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps({"work": work, "count": count}) + "\n")
        self._process.stdin.flush()
        return float(self._answer())

    def rate(self, work: str, count: int) -> float:
        return count / self.seconds(work, count)

    def _answer(self) -> str:
        assert self._process is not None
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise Absent(f"{self.name} ended: {self._log.read_text()[-300:]}")
        return line
