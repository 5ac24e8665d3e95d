"""Client for asyncio. `IrisClient` has the same methods without asyncio."""

import os
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine, Iterable
from contextlib import aclosing, asynccontextmanager
from typing import Any, Final, Literal, Self, Unpack, overload

import anyio
from anyio.to_thread import run_sync

from neorion.iris.client.connection import AsyncJob, ControllerConnection
from neorion.iris.client.endpoint import Endpoint, local_cluster_endpoint, resolve_endpoint, task_endpoint
from neorion.iris.client.job_names import generate_job_name
from neorion.iris.client.map_results import Chunks, MapResults
from neorion.iris.client.options import (
    TASKS_WITH_ARGS_MAX,
    BlobPayload,
    MapOptions,
    Options,
    Work,
    check_call,
    check_function,
    check_options,
    check_replicas,
    spec_of,
)
from neorion.iris.client.progress import Progress, report_progress
from neorion.iris.model.gen import iris_pb as pb
from neorion.iris.model.map_task import MapTask
from neorion.keel.base import Error, Invalid
from neorion.keel.clock import SystemIds
from neorion.keel.rpc import check_proof, connect

# Longest time to cancel an abandoned map on the controller.
_CANCEL_TIMEOUT_S: Final = 5.0


class AsyncIrisClient(ControllerConnection):
    """Client of one controller. Use it as an async context manager, or close it when done."""

    @classmethod
    def remote(cls, url: str | None = None, *, token: str | None = None, user: str = "") -> Self:
        """Connects to a controller. Defaults come from `IRIS_CONTROLLER` and `IRIS_TOKEN`, or a controller of this user here.

        Inside a task the defaults are the task's own cluster and token, and submitted jobs are its children.
        """
        return cls.at(resolve_endpoint(url, token, user, os.environ))

    @classmethod
    def current(cls) -> Self:
        """Connects to the cluster of the task that runs this code. Submitted jobs are child jobs and end with the task."""
        return cls.at(task_endpoint(os.environ))

    @classmethod
    @asynccontextmanager
    async def local(cls, workers: int = 2) -> AsyncGenerator[Self]:
        """Starts a controller and workers on this machine. They end with this client."""
        from neorion.iris.client.local_cluster import EmbeddedCluster  # noqa: PLC0415 -- most clients start no cluster

        embedded = EmbeddedCluster(workers)
        try:
            await run_sync(embedded.__enter__)
            async with cls.at(local_cluster_endpoint(embedded.url, os.environ), embedded.check) as client:
                yield client
        finally:
            with anyio.CancelScope(shield=True):
                await run_sync(embedded.__exit__, None, None, None)

    @classmethod
    def at(cls, endpoint: Endpoint, check: Callable[[], None] = lambda: None) -> Self:
        check_proof(endpoint.url, endpoint.token)
        return cls(connect(endpoint.url, ids=SystemIds(), token=endpoint.token), endpoint.prefix, check)

    async def submit(
        self,
        work: Work,
        name: str,
        *,
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
        replicas: int = 1,
        **options: Unpack[Options],
    ) -> AsyncJob:
        """Submits a function or a command. A string is a shell command; a list is a program and its arguments."""
        payload = BlobPayload()
        spec = self._spec(work, name, (args, kwargs or {}), replicas, options, payload)
        return await self.send(spec, payload, options.get("key", ""))

    async def gang(
        self,
        work: Work,
        name: str,
        *,
        replicas: int,
        within: str = "slice",
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
        **options: Unpack[Options],
    ) -> AsyncJob:
        """Submits tasks that start all together or not at all, on workers with the same value of `within`."""
        payload = BlobPayload()
        spec = self._spec(work, name, (args, kwargs or {}), replicas, options, payload)
        spec.gang = within
        return await self.send(spec, payload, options.get("key", ""))

    def _spec(
        self,
        work: Work,
        name: str,
        given: tuple[tuple[Any, ...], dict[str, Any]],
        replicas: int,
        options: Options,
        payload: BlobPayload,
    ) -> pb.JobSpec:
        check_options(options, Options)
        check_replicas(replicas)
        spec = spec_of(work, self.path(name), options, payload)
        spec.replicas = replicas
        if callable(work):
            check_call(work, *given)
        if any(given):
            if not callable(work):
                raise Invalid(
                    "iris.arguments", "Only a function takes arguments.", hint="Put them into the command."
                )
            if replicas > TASKS_WITH_ARGS_MAX:
                raise Invalid(
                    "iris.arguments",
                    f"{replicas} tasks cannot be given arguments; {TASKS_WITH_ARGS_MAX} can.",
                    hint="Put the arguments into the function: functools.partial(function, …).",
                )
            spec.inputs = [payload.pickled(given, "An argument")] * replicas
        return spec

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
    ) -> Coroutine[Any, Any, list[Any]]: ...

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
    ) -> AsyncGenerator[tuple[int, Any]]: ...

    def map(
        self,
        function: Callable[..., Any],
        items: Iterable[Any],
        name: str = "",
        *,
        as_completed: bool = False,
        progress: Progress = False,
        **options: Unpack[MapOptions],
    ) -> Coroutine[Any, Any, list[Any]] | AsyncGenerator[tuple[int, Any]]:
        """Calls the function on every item, on warm workers. Returns the values in the order of the items.

        `as_completed` yields pairs of an item's number and its value, each as soon as it is available. An `Args`
        item holds several arguments. A map that an error or Ctrl-C interrupts is cancelled.
        """
        everything = list(items)
        eager = as_completed or bool(progress)
        pairs = self._map(function, everything, name, options, eager=eager)
        counted = report_progress(pairs, len(everything), progress)
        return counted if as_completed else _in_order(counted, len(everything))

    async def start_map(
        self,
        function: Callable[..., Any],
        items: list[Any],
        name: str = "",
        **options: Unpack[MapOptions],
    ) -> AsyncJob:
        """Submits a map and does not wait for it. Each task has a chunk of the items, and returns a list of values."""
        return await self.submit_request(await self._prepare_map(function, items, name, options))

    async def _prepare_map(
        self, function: Callable[..., Any], items: list[Any], name: str, options: MapOptions
    ) -> pb.SubmitRequest:
        check_options(options, MapOptions)
        check_function(function)
        payload = BlobPayload()
        chunks = Chunks.of(len(items), options.get("chunk", 0))
        keep_errors = options.get("return_exceptions", False)
        work = MapTask(function, keep_errors=keep_errors)
        key = options.get("key", "")
        spec = spec_of(work, self.path(name or generate_job_name("map", self._ids, key)), options, payload)
        spec.replicas, spec.warm = len(chunks), True
        if keep_errors:
            # A task that crashes must fail only its own items.
            spec.max_failed_tasks = len(chunks)
        nothing: dict[str, Any] = {}
        spec.inputs = payload.pickled_each(
            (((part.start, items[part.start : part.stop]), nothing) for part in chunks), "An item"
        )
        return await self.prepare(spec, payload, key)

    async def _map(
        self,
        function: Callable[..., Any],
        items: list[Any],
        name: str,
        options: MapOptions,
        *,
        eager: bool,
    ) -> AsyncGenerator[tuple[int, Any]]:
        if not items:
            return
        request = await self._prepare_map(function, items, name, options)
        try:
            job = await self.submit_request(request)
        except anyio.get_cancelled_exc_class():
            # The submission may have arrived. Submitting it again returns the job, which can then be cancelled.
            await self._cancel_abandoned(lambda: self.submit_request(request))
            raise
        chunks = Chunks.of(len(items), options.get("chunk", 0))
        outcomes = MapResults(chunks, self.get_blob, options.get("return_exceptions", False))
        ended = False
        try:
            async with (
                aclosing(self.ends(job.id, eager=eager)) as ends,
                aclosing(outcomes.of(ends)) as results,
            ):
                async for pairs in results:
                    for pair in pairs:
                        yield pair
            ended = True
        finally:
            if not ended:
                await self._cancel_abandoned(lambda: _already_submitted(job))

    async def _cancel_abandoned(self, find: Callable[[], Awaitable[AsyncJob]]) -> None:
        """Cancels an abandoned map. An error is ignored, because the job may have ended already."""
        with anyio.move_on_after(_CANCEL_TIMEOUT_S, shield=True):
            try:
                await self.cancel(await find())
            except Error:
                return


async def _already_submitted(job: AsyncJob) -> AsyncJob:
    return job


async def _in_order(pairs: AsyncGenerator[tuple[int, Any]], total: int) -> list[Any]:
    values: list[Any] = [None] * total
    async for number, value in pairs:
        values[number] = value
    return values
