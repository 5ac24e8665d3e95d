"""`navarch serve` and `navarch agent` as processes of their own, and the command line beside them."""

import json
import os
import subprocess
import sys
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import anyio
from anyio.abc import Process
from anyio.streams.text import TextReceiveStream

PROGRAM = [sys.executable, "-m", "neorion.navarch"]
# Each look is a process of its own and takes about a second.
LOOKS_MAX = 60


class Lines:
    """What a process says, line by line. The next look begins where the last one ended."""

    def __init__(self, process: Process, stream: str) -> None:
        self._source = TextReceiveStream(getattr(process, stream))
        self._text = ""
        self._passed: list[str] = []

    async def until(self, *words: str) -> str:
        """The next line that has all of these words."""
        while True:
            line, end, rest = self._text.partition("\n")
            if end:
                self._text = rest
                if all(word in line for word in words):
                    return line
                self._passed.append(line)
                continue
            try:
                self._text += await self._source.receive()
            except anyio.EndOfStream:
                raise AssertionError("\n".join([*self._passed, self._text])) from None


@dataclass(slots=True)
class Running:
    """One process. What it logs comes as JSON."""

    process: Process
    log: Lines
    out: Lines

    async def kill(self) -> None:
        self.process.kill()
        await self.process.wait()


@dataclass(frozen=True, slots=True)
class Fleet:
    """Everything in one folder: `env` is what all of them are started with."""

    folder: Path
    env: dict[str, str] = field(default_factory=dict[str, str])

    @classmethod
    def at(cls, folder: Path, **env: str) -> "Fleet":
        return cls(folder, {"PATH": os.environ["PATH"], "HOME": str(folder), "LANG": "C.UTF-8", **env})

    @asynccontextmanager
    async def start(self, *args: str, **env: str) -> AsyncGenerator[Running]:
        async with await anyio.open_process(
            [*PROGRAM, *args, "--log", "json"],
            stdin=subprocess.DEVNULL,
            cwd=self.folder,
            env=self.env | env,
        ) as process:
            try:
                yield Running(process, Lines(process, "stderr"), Lines(process, "stdout"))
            finally:
                if process.returncode is None:
                    process.terminate()

    async def call(self, *args: str) -> Any:
        done = await anyio.run_process([*PROGRAM, *args, "-o", "json"], env=self.env)
        return json.loads(done.stdout)

    async def look(self, good: Callable[[Any], bool], *args: str) -> Any:
        """Asks until the answer is good."""
        found: Any = None
        for _ in range(LOOKS_MAX):
            found = await self.call(*args)
            if good(found):
                return found
        raise AssertionError(found)

    async def history(self, subject: str, last: str, server: str) -> Sequence[str]:
        """The words of a story, once `last` is among them."""

        def told(lines: Any) -> bool:
            return any(line["event"] == last for line in lines)

        lines = await self.look(told, "node", "history", subject, "--server", server)
        return [line["event"] for line in lines]
