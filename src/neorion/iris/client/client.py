"""The client without asyncio: the same verbs, each carried out on a loop of its own. Works inside a running loop too."""

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
    # Loaded with the first client: messages and connections are most of what a client costs, and a program or a task
    # that imports this module may make none.
    from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Iterator
    from types import TracebackType

    from neorion.iris.client.async_client import AsyncIrisClient
    from neorion.iris.client.connection import AsyncJob
    from neorion.iris.client.options import MapOptions, Options, Work
    from neorion.iris.client.progress import Progress
    from neorion.iris.model.gen import iris_pb as pb

T = TypeVar("T")

# After Ctrl-C, what was going on has so long to clear up behind itself.
_CLEAR_UP_S: Final = 6.0


class Job:
    """One submitted job. Shows itself in a notebook."""

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
        """What the task writes in all of its tries, as it writes it, until it ends."""
        return self._client.follow(self, task)

    def __repr__(self) -> str:
        return f"<Job {self.name} {self.id}>"

    def _repr_html_(self) -> str | None:
        from neorion.iris.client.notebook import html  # noqa: PLC0415 -- only notebooks ask for it

        try:
            return html(self.status())
        except Error:
            # A controller that is away, or has forgotten it: the notebook shows its name, as `repr` does.
            return None


class IrisClient:
    """Talks to one controller. Close it, or use it in a `with`; a forgotten one is closed when it is collected.

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
            # Not before all of it is there: the loop of a client that was never made would hold up the program's end.
            self._finalizer = weakref.finalize(self, _close, self._owner, self._portal, stack.pop_all())

    @classmethod
    def remote(cls, url: str | None = None, *, token: str | None = None, user: str = "") -> Self:
        """What is not said comes from `IRIS_CONTROLLER` and `IRIS_TOKEN`, or from a controller of this user on this machine.

        Inside of a task these are the task's own, and jobs submitted here become its children.
        """
        from neorion.iris.client.async_client import AsyncIrisClient  # noqa: PLC0415 -- loaded with the first client

        return cls(lambda: AsyncIrisClient.remote(url, token=token, user=user))

    @classmethod
    def current(cls) -> Self:
        """For code inside of a task: the task's own cluster. What it submits are child jobs, which end with the task."""
        from neorion.iris.client.async_client import AsyncIrisClient  # noqa: PLC0415 -- as above

        return cls(AsyncIrisClient.current)

    @classmethod
    def local(cls, workers: int = 2) -> Self:
        """A controller and workers of its own on this machine, which end with this client."""
        from neorion.iris.client.async_client import AsyncIrisClient  # noqa: PLC0415 -- as above
        from neorion.iris.client.endpoint import local_cluster_endpoint  # noqa: PLC0415 -- as above
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
        """Submits a function or a command. A text is a command for the shell, a list a program and its arguments."""
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
        """Tasks that start together or not at all, on workers that share their `within`."""
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
        """The function over every item, on warm workers; values in the order of the items.

        `as_completed` gives pairs of an item's number and its value instead, each as soon as it is there. An item that is
        an `Args` is several arguments. Left before its end, by an error or by Ctrl-C, the map is cancelled.
        """
        if as_completed:
            return self._iterate(
                self._inner.map(function, items, name, as_completed=True, progress=progress, **options)
            )
        return self._call(lambda: self._inner.map(function, items, name, progress=progress, **options))

    def start_map(
        self, function: Callable[..., Any], items: list[Any], name: str = "", **options: Unpack[MapOptions]
    ) -> Job:
        """Submits a map and leaves it to itself. Each of its tasks has a chunk of the items, and a list of values."""
        return Job(self, self._call(lambda: self._inner.start_map(function, items, name, **options)))

    def wait(self, job: Job | str, timeout: float | None = None) -> Any:
        """The value; of several tasks, their values in a list. An exception of the task is raised here."""
        return self._call(lambda: self._inner.wait(_id(job), timeout=timeout))

    def get(self, job: Job | str) -> pb.Job:
        return self._call(lambda: self._inner.get(_id(job)))

    def watch(self, job: Job | str) -> Iterator[pb.JobChange]:
        """The job as it is, then each change as it happens; ends with the job. Who was cut off asks again."""
        return self._iterate(self._inner.watch(_id(job)))

    def tasks(self, job: Job | str) -> list[pb.Task]:
        return self._call(lambda: self._inner.tasks(_id(job)))

    def attempts(self, job: Job | str, task: int = 0) -> list[pb.Attempt]:
        """Every try of a task, the first one first."""
        return self._call(lambda: self._inner.attempts(_id(job), task))

    def jobs(self, prefix: str = "", states: Iterable[str] = (), limit: int = PAGE) -> list[pb.Job]:
        return self._call(lambda: self._inner.jobs(prefix, states, limit))

    def cancel(self, job: Job | str) -> list[str]:
        return self._call(lambda: self._inner.cancel(_id(job)))

    def logs(self, job: Job | str, task: int = 0, *, tail_lines: int = 0) -> str:
        """What a task has written so far, or the last lines of it."""
        return self._call(lambda: self._inner.logs(_id(job), task, tail_lines=tail_lines))

    def follow(self, job: Job | str, task: int = 0) -> Iterator[str]:
        """What a task writes, as it writes it, until it ends."""
        return self._iterate(self._inner.follow(_id(job), task))

    def workers(self) -> list[pb.Worker]:
        return self._call(self._inner.workers)

    def slices(self) -> list[pb.Slice]:
        return self._call(self._inner.slices)

    def path(self, name: str) -> str:
        """The whole name of a job: what does not begin with "/" stands below the user, or below the task's own job."""
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
        """Ctrl-C ends the work too, and lets it clear up behind itself."""
        if os.getpid() != self._owner:
            # Its loop runs there: here nobody would answer.
            raise Invalid(
                "iris.forked",
                f"The client is of process {self._owner}, from which this one was forked.",
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
                    # A task's own may be of any kind, and many would end the loop in here: raised where it was asked for.
                    return None, raised
                finally:
                    over.set()
            return None, None

        try:
            value, raised = self._portal.start_task_soon(tracked).result()
        except KeyboardInterrupt:
            # It may come before there is a future: work that nobody can name would hold up the end of this client.
            self._portal.call(_cancel, begun)
            if begun:
                over.wait(_CLEAR_UP_S)
            raise
        if raised is not None:
            if not self._finalizer.alive:
                # Another thread closed it meanwhile.
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
    """What other threads wait for here is called off: nobody could hear of it any more."""
    await client.aclose()
    await portal.stop(cancel_remaining=True)


def _close(owner: int, portal: BlockingPortal, stack: ExitStack) -> None:
    if os.getpid() == owner:
        stack.close()
        return
    # A fork has neither the loop nor a right to the cluster. It only must not wait for a loop that is not there.
    with suppress(StopIteration):
        portal.stop().send(None)


def _closed() -> Invalid:
    return Invalid(
        "iris.closed", "The client is closed.", hint="Make another, or use it inside its with block."
    )


def _cancel(scopes: Iterable[anyio.CancelScope]) -> None:
    for scope in scopes:
        scope.cancel()


def _id(job: Job | str) -> str:
    return job.id if isinstance(job, Job) else job
