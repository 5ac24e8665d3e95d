"""The client: every verb, for asyncio. `IrisClient` has the same verbs without it."""

import getpass
import os
import re
from collections.abc import AsyncIterator, Callable, Iterable
from pathlib import Path
from types import TracebackType
from typing import Any, Self, Unpack

from neorion.iris.client.options import Options, Payload, Work, chunks, spec_of
from neorion.iris.client.result import Results, value_of
from neorion.iris.model.gen import iris_pb as pb
from neorion.iris.model.gen.iris_connect import ClusterServiceClient, JobServiceClient
from neorion.iris.model.tokens import token_file
from neorion.keel.base import Deadline, Duration, Invalid
from neorion.keel.clock import SystemClock, SystemIds, system_rng
from neorion.keel.rpc import Channel, connect
from neorion.keel.run import Backoff, retry

# One question to the controller may hang this long; `wait` asks again until its own time is up.
POLL_MS = 30_000
# Blobs up to this size in all travel with the submission itself.
INLINE_BYTES_MAX = 2 * 1024 * 1024
# A message holds 4 MiB, its envelope counted in.
PART_BYTES = 2 * 1024 * 1024
# Chunks per map: enough to share the work evenly, few enough that none is mostly overhead.
CHUNKS = 64
PAGE = 500
# Long enough for a controller to be started anew.
_PATIENCE = Backoff(first=Duration.of(ms=100), most=Duration.of(seconds=5), attempts=16)


class _Each:
    """Runs a function over a chunk of items."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self._function = function

    def __call__(self, items: list[Any]) -> list[Any]:
        return [self._function(item) for item in items]


class AsyncJob:
    """One submitted job. It can be awaited: `value = await job`."""

    def __init__(self, client: "AsyncIrisClient", job_id: str, name: str) -> None:
        self._client = client
        self.id = job_id
        self.name = name

    async def status(self) -> pb.Job:
        return await self._client.get(self.id)

    async def tasks(self) -> list[pb.Task]:
        return await self._client.tasks(self.id)

    async def result(self, timeout: float | None = None) -> Any:
        return await self._client.wait(self, timeout=timeout)

    async def cancel(self) -> list[str]:
        return await self._client.cancel(self.id)

    def logs(self, task: int = 0, *, follow: bool = False) -> AsyncIterator[bytes]:
        return self._client.logs(self.id, task, follow=follow)

    def __await__(self) -> Any:
        return self.result().__await__()

    def __repr__(self) -> str:
        return f"<Job {self.name} {self.id}>"


class AsyncIrisClient:
    """Talks to one controller. Use it as an async context manager, or close it when done."""

    def __init__(self, channel: Channel, user: str) -> None:
        self._channel = channel
        self._user = user
        self._ids = SystemIds()
        self._clock = SystemClock()
        self._rng = system_rng()
        self.calls = channel.client(JobServiceClient)
        self.cluster = channel.client(ClusterServiceClient)

    @classmethod
    def remote(cls, url: str = "http://localhost:10000", *, token: str | None = None, user: str = "") -> Self:
        """`token`, or `IRIS_TOKEN`, or the one that a controller of this user on this machine left."""
        return cls(connect(url, ids=SystemIds(), token=token or _token(url)), user or _user())

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
        """Submits a function or a command. A text is a command for the shell, a list a program and its arguments."""
        payload = Payload()
        spec = spec_of(work, self.path(name), options, payload)
        spec.replicas = replicas
        if args or kwargs:
            if not callable(work):
                raise Invalid(
                    "iris.arguments", "Only a function takes arguments.", hint="put them into the command"
                )
            spec.inputs = [payload.pickled((args, kwargs or {}), "An argument")] * replicas
        return await self.send(spec, payload, options.get("key", ""))

    async def gang(
        self, work: Work, name: str, *, replicas: int, within: str = "slice", **options: Unpack[Options]
    ) -> AsyncJob:
        """Tasks that start together or not at all, on workers that share their `within`."""
        payload = Payload()
        spec = spec_of(work, self.path(name), options, payload)
        spec.replicas, spec.gang = replicas, within
        return await self.send(spec, payload, options.get("key", ""))

    async def map(
        self,
        function: Callable[..., Any],
        items: Iterable[Any],
        name: str = "",
        *,
        chunk: int = 0,
        **options: Unpack[Options],
    ) -> list[Any]:
        """The function over every item, on warm workers; values in the order of the items."""
        everything = list(items)
        if not everything:
            return []
        job = await self.start_map(function, everything, name, chunk=chunk, **options)
        return [value for values in await self.wait(job) for value in values]

    async def start_map(
        self,
        function: Callable[..., Any],
        items: list[Any],
        name: str = "",
        *,
        chunk: int = 0,
        **options: Unpack[Options],
    ) -> AsyncJob:
        payload = Payload()
        parts = chunks(items, chunk or max(1, -(-len(items) // CHUNKS)))
        spec = spec_of(_Each(function), self.path(name or f"map-{self._ids.secret()[:8]}"), options, payload)
        spec.replicas, spec.warm = len(parts), True
        nothing: dict[str, Any] = {}
        spec.inputs = [payload.pickled(((part,), nothing), "An item") for part in parts]
        return await self.send(spec, payload, options.get("key", ""))

    async def send(self, spec: pb.JobSpec, payload: Payload, key: str = "") -> AsyncJob:
        inline = sum(map(len, payload.blobs.values())) <= INLINE_BYTES_MAX
        if not inline:
            for digest, body in payload.blobs.items():
                await self.put_blob(digest, body)
        blobs = (
            [pb.Blob(digest=digest, body=body) for digest, body in payload.blobs.items()] if inline else []
        )
        # The key is made before sending, so that a submission whose answer was lost can be sent again.
        request = pb.SubmitRequest(spec=spec, key=key or self._ids.secret(), blobs=blobs)
        answer = await retry(lambda: self.calls.submit(request), _PATIENCE, self._clock, self._rng)
        return AsyncJob(self, answer.id, answer.name)

    async def wait(self, job: AsyncJob | str, timeout: float | None = None) -> Any:
        """The value; of several tasks, their values in a list. An exception of the task is raised here."""
        ended = await self.ended(job if isinstance(job, str) else job.id, timeout)
        return await value_of(ended, self.get_blob)

    async def ended(self, job: str, timeout: float | None = None) -> Results:
        """How the job ended, as soon as it has."""
        until = None if timeout is None else self._clock.monotonic() + timeout
        while True:
            left = POLL_MS if until is None else max(0, round((until - self._clock.monotonic()) * 1000))
            request = pb.WaitRequest(job=job, timeout_ms=min(POLL_MS, left))
            # Asking changes nothing, so a controller that starts anew is asked anew.
            answer = await retry(
                lambda request=request: self.calls.wait(request, timeout_ms=POLL_MS + 10_000),
                _PATIENCE,
                self._clock,
                self._rng,
            )
            if answer.tasks:
                return Results(answer)
            if until is not None and left <= POLL_MS:
                raise Deadline(
                    "iris.wait",
                    f"The job has not ended within {timeout:g} s.",
                    hint=f"it goes on; see why it waits with: iris why {job}",
                )

    async def get(self, job: str) -> pb.Job:
        return await self.calls.get(pb.GetRequest(job=job))

    async def watch(self, job: str) -> AsyncIterator[pb.JobChange]:
        """The job as it is, then each change as it happens; ends with the job. Who was cut off asks again."""
        async for change in self.calls.watch(pb.WatchRequest(job=job)):
            yield change

    async def tasks(self, job: str) -> list[pb.Task]:
        found: list[pb.Task] = []
        while True:
            page = await self.calls.tasks(pb.TasksRequest(job=job, limit=PAGE, after=len(found)))
            found += page.tasks
            if len(page.tasks) < PAGE:
                return found

    async def jobs(self, prefix: str = "", states: Iterable[str] = (), limit: int = PAGE) -> list[pb.Job]:
        answer = await self.calls.list(pb.ListRequest(prefix=prefix, states=list(states), limit=limit))
        return answer.jobs

    async def cancel(self, job: str) -> list[str]:
        return (await self.calls.cancel(pb.CancelRequest(job=job))).jobs

    async def logs(
        self, job: str, task: int = 0, *, follow: bool = False, tail_bytes: int = 0
    ) -> AsyncIterator[bytes]:
        request = pb.LogsRequest(job=job, task=task, follow=follow, tail_bytes=tail_bytes)
        async for chunk in self.calls.logs(request):
            yield chunk.text

    async def workers(self) -> list[pb.Worker]:
        return (await self.cluster.workers(pb.WorkersRequest())).workers

    async def slices(self) -> list[pb.Slice]:
        return (await self.cluster.slices(pb.SlicesRequest())).slices

    async def put_blob(self, digest: str, body: bytes) -> None:
        for offset in range(0, max(1, len(body)), PART_BYTES):
            part = body[offset : offset + PART_BYTES]
            last = offset + len(part) >= len(body)
            await self.calls.put_blob(pb.PutBlobRequest(digest=digest, offset=offset, body=part, last=last))

    async def get_blob(self, digest: str) -> bytes:
        parts: list[bytes] = []
        have, size = 0, 1
        while have < size:
            part = await self.calls.get_blob(pb.GetBlobRequest(digest=digest, offset=have))
            parts.append(part.body)
            have, size = have + len(part.body), part.size
        return b"".join(parts)

    async def aclose(self) -> None:
        await self._channel.__aexit__(None, None, None)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()

    def path(self, name: str) -> str:
        """The whole name of a job: what does not begin with "/" is one of the user's own."""
        return name if name.startswith("/") else f"/{self._user}/{name}"


def _token(url: str) -> str | None:
    if given := os.environ.get("IRIS_TOKEN"):
        return given
    host, _, port = url.rpartition("/")[2].rpartition(":")
    if host not in ("localhost", "127.0.0.1", "[::1]") or not port.isdecimal():
        return None
    try:
        return Path(token_file(os.environ, int(port))).read_text().strip() or None
    except OSError:
        return None


def _user() -> str:
    """Whoever runs this, as the machine calls them, in the form of a name."""
    try:
        found = getpass.getuser()
    except (KeyError, OSError):
        found = ""
    return re.sub(r"[^A-Za-z0-9]+", "-", found).strip("-") or "somebody"
