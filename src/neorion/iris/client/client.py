"""Client without asyncio. It runs its own event loop in a thread, so it also works inside a running loop."""

from __future__ import annotations

import os
import threading
import weakref
from contextlib import ExitStack, suppress
from typing import TYPE_CHECKING, Any, Final, Literal, Self, TypeVar, Unpack, cast, overload

import anyio
from anyio.from_thread import BlockingPortal, start_blocking_portal

from neorion.iris.client.job_names import PAGE
from neorion.keel.base import Error, Invalid

if TYPE_CHECKING:
    # Imported with the first client: messages and connections are most of its cost. A program or a task
    # that imports this module may not create a client.
    from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Iterator
    from types import TracebackType

    from neorion.iris.client.async_client import AsyncIrisClient
    from neorion.iris.client.connection import AsyncJob
    from neorion.iris.client.options import MapOptions, Options, Work
    from neorion.iris.client.progress import Progress
    from neorion.iris.model.gen import iris_pb as pb

T = TypeVar("T")

# Longest cleanup of a running call after Ctrl-C.
_CLEANUP_TIMEOUT_S: Final = 6.0


class Job:
    """A submitted job, with an HTML view for notebooks."""

    def __init__(self, client: IrisClient, inner: AsyncJob) -> None:
        self._client = client
        self.id = inner.id
        self.name = inner.name

    def status(self) -> pb.Job:
        return self._client.get(self)

    def tasks(self) -> list[pb.Task]:
        return self._client.tasks(self)

    def attempts(self, task: int = 0) -> list[pb.Attempt]:
        return self._client.attempts(self, task)

    def wait(self, timeout: float | None = None) -> Any:
        return self._client.wait(self, timeout=timeout)

    def result(self, timeout: float | None = None) -> Any:
        return self.wait(timeout)

    def cancel(self) -> list[str]:
        return self._client.cancel(self)

    def logs(self, task: int = 0) -> str:
        return self._client.logs(self, task)

    def follow(self, task: int = 0) -> Iterator[str]:
        """Yields the output of all attempts of a task while they run, until the task ends."""
        return self._client.follow(self, task)

    def __repr__(self) -> str:
        return f"<Job {self.name} {self.id}>"

    def _repr_html_(self) -> str | None:
        from neorion.iris.client.notebook import html  # noqa: PLC0415 -- only notebooks ask for it

        try:
            return html(self.status())
        except Error:
            # The controller is unreachable or has deleted the job: the notebook shows the name, as `repr` does.
            return None


class IrisClient:
    """Client of one controller. Close it, or use it in a `with` block; otherwise garbage collection closes it.

    client = IrisClient.remote("http://localhost:10000")
    job = client.submit(lambda: 42, "smoke-test")
    assert client.wait(job, timeout=2400) == 42
    """

    def __init__(self, make: Callable[[], AsyncIrisClient], before: ExitStack | None = None) -> None:
        with before or ExitStack() as stack:
            self._portal: BlockingPortal = stack.enter_context(start_blocking_portal())
            self._inner = self._portal.call(make)
            stack.callback(self._portal.call, _end, self._portal, self._inner)
            self._owner = os.getpid()
            # Last, once all parts exist: the loop of a half-made client would block the program's exit.
            self._finalizer = weakref.finalize(self, _close, self._owner, self._portal, stack.pop_all())

    @classmethod
    def remote(cls, url: str | None = None, *, token: str | None = None, user: str = "") -> Self:
        """Connects to a controller. Defaults come from `IRIS_CONTROLLER` and `IRIS_TOKEN`, or a controller of this user here.

        Inside a task the defaults are the task's own cluster and token, and submitted jobs are its children.
        """
        from neorion.iris.client.async_client import AsyncIrisClient  # noqa: PLC0415 -- loaded with the first client

        return cls(lambda: AsyncIrisClient.remote(url, token=token, user=user))

    @classmethod
    def current(cls) -> Self:
        """Connects to the cluster of the task that runs this code. Submitted jobs are child jobs and end with the task."""
        from neorion.iris.client.async_client import AsyncIrisClient  # noqa: PLC0415 -- loaded with the first client

        return cls(AsyncIrisClient.current)

    @classmethod
    def local(cls, workers: int = 2) -> Self:
        """Starts a controller and workers on this machine. They end with this client."""
        from neorion.iris.client.async_client import AsyncIrisClient  # noqa: PLC0415 -- loaded with the first client
        from neorion.iris.client.endpoint import local_cluster_endpoint  # noqa: PLC0415 -- loaded with the first client
        from neorion.iris.client.local_cluster import EmbeddedCluster  # noqa: PLC0415 -- most clients start no cluster

        stack = ExitStack()
        embedded = stack.enter_context(EmbeddedCluster(workers))
        return cls(
            lambda: AsyncIrisClient.at(local_cluster_endpoint(embedded.url, os.environ), embedded.check),
            stack,
        )

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
        """Submits a function or a command. A string is a shell command; a list is a program and its arguments."""
        inner = self._call(
            lambda: self._inner.submit(work, name, args=args, kwargs=kwargs, replicas=replicas, **options)
        )
        return Job(self, inner)

    def gang(
        self,
        work: Work,
        name: str,
        *,
        replicas: int,
        within: str = "slice",
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
        **options: Unpack[Options],
    ) -> Job:
        """Submits tasks that start all together or not at all, on workers with the same value of `within`."""
        inner = self._call(
            lambda: self._inner.gang(
                work, name, replicas=replicas, within=within, args=args, kwargs=kwargs, **options
            )
        )
        return Job(self, inner)

    @overload
    def map(
        self,
        function: Callable[..., Any],
        items: Iterable[Any],
        name: str = "",
        *,
        as_completed: Literal[False] = False,
        progress: Progress = False,
        **options: Unpack[MapOptions],
    ) -> list[Any]: ...

    @overload
    def map(
        self,
        function: Callable[..., Any],
        items: Iterable[Any],
        name: str = "",
        *,
        as_completed: Literal[True],
        progress: Progress = False,
        **options: Unpack[MapOptions],
    ) -> Iterator[tuple[int, Any]]: ...

    def map(
        self,
        function: Callable[..., Any],
        items: Iterable[Any],
        name: str = "",
        *,
        as_completed: bool = False,
        progress: Progress = False,
        **options: Unpack[MapOptions],
    ) -> list[Any] | Iterator[tuple[int, Any]]:
        """Calls the function on every item, on warm workers. Returns the values in the order of the items.

        `as_completed` yields pairs of an item's number and its value, each as soon as it is available. An `Args`
        item holds several arguments. A map that an error or Ctrl-C interrupts is cancelled.
        """
        if as_completed:
            return self._iterate(
                self._inner.map(function, items, name, as_completed=True, progress=progress, **options)
            )
        return self._call(lambda: self._inner.map(function, items, name, progress=progress, **options))

    def start_map(
        self, function: Callable[..., Any], items: list[Any], name: str = "", **options: Unpack[MapOptions]
    ) -> Job:
        """Submits a map and does not wait for it. Each task has a chunk of the items, and returns a list of values."""
        return Job(self, self._call(lambda: self._inner.start_map(function, items, name, **options)))

    def wait(self, job: Job | str, timeout: float | None = None) -> Any:
        """Waits for the job and returns its value, or a list for several tasks. Raises the exception of the task."""
        return self._call(lambda: self._inner.wait(_id(job), timeout=timeout))

    def get(self, job: Job | str) -> pb.Job:
        return self._call(lambda: self._inner.get(_id(job)))

    def watch(self, job: Job | str) -> Iterator[pb.JobChange]:
        """Yields the job's state, then each change until the job ends. Call it again after a lost connection."""
        return self._iterate(self._inner.watch(_id(job)))

    def tasks(self, job: Job | str) -> list[pb.Task]:
        return self._call(lambda: self._inner.tasks(_id(job)))

    def attempts(self, job: Job | str, task: int = 0) -> list[pb.Attempt]:
        """Attempts of a task, oldest first."""
        return self._call(lambda: self._inner.attempts(_id(job), task))

    def jobs(self, prefix: str = "", states: Iterable[str] = (), limit: int = PAGE) -> list[pb.Job]:
        return self._call(lambda: self._inner.jobs(prefix, states, limit))

    def cancel(self, job: Job | str) -> list[str]:
        return self._call(lambda: self._inner.cancel(_id(job)))

    def logs(self, job: Job | str, task: int = 0, *, tail_lines: int = 0) -> str:
        """Output of a task so far, or its last lines."""
        return self._call(lambda: self._inner.logs(_id(job), task, tail_lines=tail_lines))

    def follow(self, job: Job | str, task: int = 0) -> Iterator[str]:
        """Yields the output of all attempts of a task while they run, until the task ends."""
        return self._iterate(self._inner.follow(_id(job), task))

    def workers(self) -> list[pb.Worker]:
        return self._call(self._inner.workers)

    def slices(self) -> list[pb.Slice]:
        return self._call(self._inner.slices)

    def path(self, name: str) -> str:
        """Full name of a job. A name without a leading "/" is relative to the user or to the task's own job."""
        return self._inner.path(name)

    def close(self) -> None:
        self._finalizer()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _call(self, work: Callable[[], Awaitable[T]]) -> T:
        """Runs the call on the client's loop. Ctrl-C cancels it and waits for its cleanup."""
        if os.getpid() != self._owner:
            # The loop runs in the parent process only, so the call would never return.
            raise Invalid(
                "iris.forked",
                f"The client belongs to process {self._owner}, from which this process was forked.",
                hint="Make a client in each process, after the fork.",
            )
        if not self._finalizer.alive:
            raise _closed()
        begun: list[anyio.CancelScope] = []
        over = threading.Event()

        async def tracked() -> tuple[T | None, BaseException | None]:
            with anyio.CancelScope() as scope:
                begun.append(scope)
                try:
                    return await work(), None
                except BaseException as raised:
                    if scope.cancel_called:
                        raise
                    # A task may raise any kind of exception, and many would end this loop: the caller raises it.
                    return None, raised
                finally:
                    over.set()
            return None, None

        try:
            value, raised = self._portal.start_task_soon(tracked).result()
        except KeyboardInterrupt:
            # The interrupt may come before there is a future. A call left running would block `close`.
            self._portal.call(_cancel, begun)
            if begun:
                over.wait(_CLEANUP_TIMEOUT_S)
            raise
        if raised is not None:
            if not self._finalizer.alive:
                # Another thread closed the client meanwhile.
                raise _closed() from raised
            raise raised
        return cast("T", value)

    def _iterate(self, values: AsyncGenerator[T]) -> Iterator[T]:
        try:
            while True:
                try:
                    value = self._call(values.__anext__)
                except StopAsyncIteration:
                    return
                yield value
        finally:
            self._call(values.aclose)


async def _end(portal: BlockingPortal, client: AsyncIrisClient) -> None:
    """Closes the connection and cancels the calls of other threads."""
    await client.aclose()
    await portal.stop(cancel_remaining=True)


def _close(owner: int, portal: BlockingPortal, stack: ExitStack) -> None:
    if os.getpid() == owner:
        stack.close()
        return
    # A forked process has no loop and must not stop the cluster. It only must not wait for the loop.
    with suppress(StopIteration):
        portal.stop().send(None)


def _closed() -> Invalid:
    return Invalid(
        "iris.closed", "The client is closed.", hint="Make another client, or use it inside its with block."
    )


def _cancel(scopes: Iterable[anyio.CancelScope]) -> None:
    for scope in scopes:
        scope.cancel()


def _id(job: Job | str) -> str:
    return job.id if isinstance(job, Job) else job
