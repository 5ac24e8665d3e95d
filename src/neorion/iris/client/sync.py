"""The client without asyncio: the same verbs, each carried out on a loop of its own. Works inside a running loop too."""

import weakref
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from html import escape
from types import TracebackType
from typing import Any, Self, Unpack

from anyio.from_thread import BlockingPortal, start_blocking_portal

from neorion.iris.client.aio import AsyncIrisClient, AsyncJob
from neorion.iris.client.embedded import Embedded
from neorion.iris.client.options import Options, Work
from neorion.iris.model.gen import iris_pb as pb


class Job:
    """One submitted job. Shows itself in a notebook."""

    def __init__(self, client: "IrisClient", inner: AsyncJob) -> None:
        self._client = client
        self.inner = inner

    @property
    def id(self) -> str:
        return self.inner.id

    @property
    def name(self) -> str:
        return self.inner.name

    def status(self) -> pb.Job:
        return self._client.call(self.inner.status)

    def tasks(self) -> list[pb.Task]:
        return self._client.call(self.inner.tasks)

    def wait(self, timeout: float | None = None) -> Any:
        return self._client.wait(self, timeout=timeout)

    def result(self, timeout: float | None = None) -> Any:
        return self.wait(timeout)

    def cancel(self) -> list[str]:
        return self._client.call(self.inner.cancel)

    def logs(self, task: int = 0) -> str:
        return b"".join(self._client.iterate(self.inner.logs(task))).decode(errors="replace")

    def follow(self, task: int = 0) -> Iterator[str]:
        """What the task writes, as it writes it, until it ends."""
        return (
            chunk.decode(errors="replace")
            for chunk in self._client.iterate(self.inner.logs(task, follow=True))
        )

    def __repr__(self) -> str:
        return repr(self.inner)

    def _repr_html_(self) -> str:
        status = self.status()
        tasks = ", ".join(f"{count} {state}" for state, count in sorted(status.tasks.items()) if count)
        why = (
            f"<br><i>{escape(status.reason.sentence)}</i>" if status.reason and status.reason.sentence else ""
        )
        return f"<b>{escape(status.name)}</b> {escape(status.state)}: {escape(tasks)}{why}"


class IrisClient:
    """Talks to one controller. Close it, or use it in a `with`; a forgotten one is closed when it is collected.

    client = IrisClient.remote("http://localhost:10000")
    job = client.submit(lambda: 42, "smoke-test")
    assert client.wait(job, timeout=2400) == 42
    """

    def __init__(self, make: Callable[[], AsyncIrisClient], before: ExitStack | None = None) -> None:
        self._stack = before or ExitStack()
        self._portal: BlockingPortal = self._stack.enter_context(start_blocking_portal())
        self._inner = self._portal.call(make)
        self._stack.callback(self._portal.call, self._inner.aclose)
        self._finalizer = weakref.finalize(self, self._stack.close)

    @classmethod
    def remote(cls, url: str = "http://localhost:10000", *, token: str | None = None, user: str = "") -> Self:
        return cls(lambda: AsyncIrisClient.remote(url, token=token, user=user))

    @classmethod
    def local(cls, workers: int = 2) -> Self:
        """A controller and workers of its own on this machine, which end with this client."""
        stack = ExitStack()
        embedded = stack.enter_context(Embedded(workers))
        return cls(lambda: AsyncIrisClient.remote(embedded.url), stack)

    def submit(
        self,
        work: Work,
        name: str,
        *,
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
        replicas: int = 1,
        **options: Unpack[Options],
    ) -> Job:
        """Submits a function or a command. A text is a command for the shell, a list a program and its arguments."""
        return Job(
            self,
            self.call(
                lambda: self._inner.submit(work, name, args=args, kwargs=kwargs, replicas=replicas, **options)
            ),
        )

    def gang(
        self, work: Work, name: str, *, replicas: int, within: str = "slice", **options: Unpack[Options]
    ) -> Job:
        """Tasks that start together or not at all, on workers that share their `within`."""
        return Job(
            self, self.call(lambda: self._inner.gang(work, name, replicas=replicas, within=within, **options))
        )

    def map(
        self,
        function: Callable[..., Any],
        items: Iterable[Any],
        name: str = "",
        *,
        chunk: int = 0,
        **options: Unpack[Options],
    ) -> list[Any]:
        """The function over every item, on warm workers; values in the order of the items."""
        return self.call(lambda: self._inner.map(function, items, name, chunk=chunk, **options))

    def wait(self, job: Job | str, timeout: float | None = None) -> Any:
        """The value; of several tasks, their values in a list. An exception of the task is raised here."""
        target = job if isinstance(job, str) else job.id
        return self.call(lambda: self._inner.wait(target, timeout=timeout))

    def jobs(self, prefix: str = "", states: Iterable[str] = ()) -> list[pb.Job]:
        return self.call(lambda: self._inner.jobs(prefix, states))

    def cancel(self, job: Job | str) -> list[str]:
        target = job if isinstance(job, str) else job.id
        return self.call(lambda: self._inner.cancel(target))

    def call(self, work: Callable[[], Any]) -> Any:
        return self._portal.call(work)

    def iterate(self, chunks: Any) -> Iterator[bytes]:
        while True:
            try:
                yield self._portal.call(chunks.__anext__)
            except StopAsyncIteration:
                return

    def close(self) -> None:
        self._finalizer()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
