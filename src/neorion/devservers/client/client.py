"""The same server for programs that do not await: a thread of its own does it for them."""

from collections.abc import AsyncGenerator, Generator, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack
from datetime import datetime
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Self, Unpack

from anyio.from_thread import BlockingPortal, start_blocking_portal

from neorion.devservers.client.async_client import AsyncDevServer, CreateArgs, KubeSelection
from neorion.devservers.client.file_copy import SkippedEntry
from neorion.devservers.client.server_diagnosis import Diagnosis
from neorion.devservers.client.wait import PATIENCE
from neorion.devservers.model import Cost, DevServerStatus
from neorion.keel.base import Duration
from neorion.keel.kube.core import Event
from neorion.keel.kube.streams import ExecResult


class DevServer:
    """A server for as long as a block lasts.

    with DevServer.create("mydev", flavor="cpu-small", time="2h") as server:
        done = server.exec(["python", "train.py"])

    The block of `create` begins when the server is ready, and deletes it at its end unless it is to be kept; its home
    stays for its retention. The block of `get` leaves it as it is.
    """

    def __init__(self, inner: AsyncDevServer) -> None:
        self._inner = inner
        self._stack = ExitStack()
        self._opened: BlockingPortal | None = None

    @classmethod
    def create(cls, name: str, *, keep: bool = False, **wanted: Unpack[CreateArgs]) -> Self:
        return cls(AsyncDevServer.create(name, keep=keep, **wanted))

    @classmethod
    def get(cls, name: str, **where: Unpack[KubeSelection]) -> Self:
        return cls(AsyncDevServer.get(name, **where))

    @property
    def name(self) -> str:
        return self._inner.name

    @property
    def _portal(self) -> BlockingPortal:
        if self._opened is None:
            raise RuntimeError("a server is used inside its `with` block")
        return self._opened

    def __enter__(self) -> Self:
        # Whatever ends the wait, Ctrl-C above all, has to reach the thread: it would wait on, and so should we.
        with ExitStack() as opening:
            portal = opening.enter_context(start_blocking_portal())
            opening.enter_context(portal.wrap_async_context_manager(self._inner))
            self._stack = opening.pop_all()
        self._opened = portal
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.__exit__(kind, error, trace)
        self._opened = None

    def status(self) -> DevServerStatus:
        return self._portal.call(self._inner.status)

    def doctor(self) -> Diagnosis:
        """Why it is as it is, in one sentence, and what would help."""
        return self._portal.call(self._inner.doctor)

    def events(self) -> list[Event]:
        """Events of the server and of its objects, the oldest first."""
        return self._portal.call(self._inner.events)

    def cost(self) -> Cost | None:
        """Cost up to now; None before the operator has recorded any."""
        return self._portal.call(self._inner.cost)

    def wait(self, patience: Duration = PATIENCE) -> None:
        """Until it can be used."""
        self._portal.call(self._inner.wait, patience)

    def exec(self, command: Sequence[str], stdin: bytes = b"", *, rank: int | None = None) -> ExecResult:
        """Runs a command to its end; its exit code is in what comes back. A text is for the shell, a list a program and its arguments."""
        return self._portal.call(partial(self._inner.exec, command, stdin, rank=rank))

    def start(self, time: str = "") -> None:
        self._portal.call(self._inner.start, time)

    def stop(self) -> None:
        """The home is kept."""
        self._portal.call(self._inner.stop)

    def extend(self, time: str, *, shorten: bool = False) -> datetime:
        """Gives the new end."""
        return self._portal.call(lambda: self._inner.extend(time, shorten=shorten))

    def update(self, flavor: str) -> None:
        """Changes the flavor, and waits until the server stands on it if it runs."""
        self._portal.call(self._inner.update, flavor)

    def delete(self) -> None:
        """Now, and not first at the end of the block."""
        self._portal.call(self._inner.delete)

    def logs(self, *, follow: bool = False, tail: int | None = None) -> Iterator[bytes]:
        pieces = self._inner.logs(follow=follow, tail=tail)
        return self._iterate(pieces)

    def copy_to(self, source: str | Path, target: str) -> None:
        self._portal.call(self._inner.copy_to, source, target)

    def copy_from(self, source: str, target: str | Path) -> tuple[SkippedEntry, ...]:
        """Gives what had to be left out: links that lead out of the copy."""
        return self._portal.call(self._inner.copy_from, source, target)

    def forward(self, port: int, local: int = 0) -> AbstractContextManager[int]:
        """While the block lasts, a port of this machine leads to the server's; it is given."""
        return self._portal.wrap_async_context_manager(self._inner.forward(port, local))

    def _iterate(self, pieces: AsyncGenerator[bytes]) -> Generator[bytes]:
        try:
            while True:
                try:
                    yield self._portal.call(pieces.__anext__)
                except StopAsyncIteration:
                    return
        finally:
            self._portal.call(pieces.aclose)
