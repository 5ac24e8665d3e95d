"""Connection of a client to its controller: calls with retries, and submitted jobs."""

import codecs
import re
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Iterable
from contextlib import aclosing
from types import TracebackType
from typing import Any, Final, Self, TypeVar

import anyio

from neorion.iris.client import blob_transfer
from neorion.iris.client.job_names import PAGE, check_name
from neorion.iris.client.options import BlobPayload
from neorion.iris.client.result import JobResults, WaitTimeout, value_of
from neorion.iris.model.gen import iris_pb as pb
from neorion.iris.model.gen.iris_client import ClusterServiceClient, JobServiceClient
from neorion.keel.base import Duration, Retry, Unauthenticated
from neorion.keel.clock import SystemClock, SystemIds, system_rng
from neorion.keel.rpc import Channel
from neorion.keel.run import Backoff, retry
from neorion.keel.telemetry import logger

log = logger(__name__)

T = TypeVar("T")

# Longest duration of one long poll; `wait` polls again until its own timeout.
POLL_MS: Final = 30_000
# Blobs up to this total size are sent with the submission itself.
INLINE_BYTES_MAX: Final = 2 * 1024 * 1024
# Long enough for a restart of the controller.
_RETRIES: Final = Backoff(first=Duration.of(ms=100), most=Duration.of(seconds=5), attempts=16)
# Before the first answer, a wrong URL is more likely than a restart.
_FIRST_RETRIES: Final = Backoff(first=Duration.of(ms=100), most=Duration.of(seconds=5), attempts=8)
# About an hour, so that waiting for a long job survives an upgrade of the controller.
_WAIT_RETRIES: Final = Backoff(first=Duration.of(ms=100), most=Duration.of(seconds=5), attempts=1_500)
# Extra time for the answer to a call that was made within the caller's timeout.
_ANSWER_S: Final = 5.0
_JOB_ID: Final = re.compile(r"job-[0-9a-z]{26}")
_ENDED: Final = ("succeeded", "failed", "cancelled")


class AsyncJob:
    """A submitted job. It can be awaited: `value = await job`."""

    def __init__(self, client: "ControllerConnection", job_id: str, name: str) -> None:
        self._client = client
        self.id = job_id
        self.name = name

    async def status(self) -> pb.Job:
        return await self._client.get(self)

    async def tasks(self) -> list[pb.Task]:
        return await self._client.tasks(self)

    async def attempts(self, task: int = 0) -> list[pb.Attempt]:
        return await self._client.attempts(self, task)

    async def wait(self, timeout: float | None = None) -> Any:
        return await self._client.wait(self, timeout=timeout)

    async def result(self, timeout: float | None = None) -> Any:
        return await self.wait(timeout)

    async def cancel(self) -> list[str]:
        return await self._client.cancel(self)

    async def logs(self, task: int = 0) -> str:
        return await self._client.logs(self, task)

    def follow(self, task: int = 0) -> AsyncIterator[str]:
        """Yields the output of all attempts of a task while they run, until the task ends."""
        return self._client.follow(self, task)

    def __await__(self) -> Any:
        return self.result().__await__()

    def __repr__(self) -> str:
        return f"<Job {self.name} {self.id}>"


class ControllerConnection:
    """Calls to one controller. Use it as an async context manager, or close it when done.

    `check` raises if the controller does not answer and never will again.
    """

    def __init__(self, channel: Channel, prefix: str, check: Callable[[], None] = lambda: None) -> None:
        self._channel = channel
        self._prefix = prefix
        self._check = check
        self._ids = SystemIds()
        self._clock = SystemClock()
        self._rng = system_rng()
        self._reached = False
        self.calls = channel.client(JobServiceClient)
        self.cluster = channel.client(ClusterServiceClient)

    async def ends(self, job: str, *, eager: bool) -> AsyncGenerator[tuple[pb.Job, pb.Task, bytes]]:
        """Yields ended tasks with their small results: each as it ends if `eager`, otherwise all at the end of the job."""
        if not eager:
            results = await self.ended(job)
            for task in _failed_first(results.tasks):
                yield results.job, task, results.small(task)
            return
        seen: set[int] = set()
        while True:
            try:
                async with aclosing(self.watch(job)) as changes:
                    async for change in changes:
                        fresh = [
                            task for task in change.tasks if task.state in _ENDED and task.index not in seen
                        ]
                        seen.update(task.index for task in fresh)
                        for task in _failed_first(fresh):
                            yield change.job or pb.Job(), task, b""
            except Retry:
                # The controller restarts; the watch resumes when it answers again.
                await self._retrying_long(lambda: self.get(job))
            else:
                return

    async def send(self, spec: pb.JobSpec, payload: BlobPayload, key: str = "") -> AsyncJob:
        return await self.submit_request(await self.prepare(spec, payload, key))

    async def prepare(self, spec: pb.JobSpec, payload: BlobPayload, key: str = "") -> pb.SubmitRequest:
        """Builds a submission. Large blobs are uploaded first; small ones are part of the request."""
        # The key is made before sending, so that a submission whose answer was lost can be repeated.
        request = pb.SubmitRequest(spec=spec, key=key or self._ids.secret())
        if sum(map(len, payload.blobs.values())) <= INLINE_BYTES_MAX:
            request.blobs = [pb.Blob(digest=digest, body=body) for digest, body in payload.blobs.items()]
            return request
        await self.check_admission(request)
        for digest, body in payload.blobs.items():
            await self.put_blob(digest, body)
        return request

    async def check_admission(self, request: pb.SubmitRequest) -> None:
        """Checks a submission with a dry run, before its blobs are uploaded."""
        dry_run = pb.SubmitRequest(spec=request.spec, key=request.key, dry_run=True)
        await self._retrying(lambda: self.calls.submit(dry_run))

    async def submit_request(self, request: pb.SubmitRequest) -> AsyncJob:
        """Submits the request. A repeated request returns the same job."""
        answer = await self._retrying(lambda: self.calls.submit(request))
        return AsyncJob(self, answer.id, answer.name)

    async def wait(self, job: AsyncJob | str, timeout: float | None = None) -> Any:
        """Waits for the job and returns its value, or a list for several tasks. Raises the exception of the task."""
        ended = await self.ended(self.named(job), timeout)
        return await value_of(ended, self.get_blob)

    async def ended(self, job: str, timeout: float | None = None) -> JobResults:
        """Waits until the job ends, and returns its tasks and small results."""
        if timeout is None:
            while not (results := await self._wait_once(job, POLL_MS)).tasks:
                pass
            return results
        until = self._clock.monotonic() + timeout
        with anyio.move_on_after(timeout + _ANSWER_S):
            left = POLL_MS + 1
            while left > POLL_MS:
                left = max(0, round((until - self._clock.monotonic()) * 1000))
                results = await self._wait_once(job, min(POLL_MS, left))
                if results.tasks:
                    return results
        raise WaitTimeout(
            "iris.wait",
            f"The job has not ended within {timeout:g} s.",
            hint=f"See why it has not ended with: iris why {job}.",
        )

    async def _wait_once(self, job: str, most_ms: int) -> JobResults:
        request = pb.WaitRequest(job=job, timeout_ms=most_ms)
        answer = await self._retrying_long(lambda: self.calls.wait(request, timeout_ms=POLL_MS + 10_000))
        return JobResults(answer)

    async def get(self, job: AsyncJob | str) -> pb.Job:
        return await self.calls.get(pb.GetRequest(job=self.named(job)))

    async def watch(self, job: AsyncJob | str) -> AsyncGenerator[pb.JobChange]:
        """Yields the job's state, then each change until the job ends. Call it again after a lost connection."""
        async for change in self.calls.watch(pb.WatchRequest(job=self.named(job))):
            yield change

    async def tasks(self, job: AsyncJob | str) -> list[pb.Task]:
        tasks: list[pb.Task] = []
        while True:
            page = await self.calls.tasks(pb.TasksRequest(job=self.named(job), limit=PAGE, after=len(tasks)))
            tasks += page.tasks
            if len(page.tasks) < PAGE:
                return tasks

    async def attempts(self, job: AsyncJob | str, task: int = 0) -> list[pb.Attempt]:
        """Attempts of a task, oldest first."""
        return (await self.calls.attempts(pb.AttemptsRequest(job=self.named(job), task=task))).attempts

    async def jobs(self, prefix: str = "", states: Iterable[str] = (), limit: int = PAGE) -> list[pb.Job]:
        answer = await self.calls.list(pb.ListRequest(prefix=prefix, states=list(states), limit=limit))
        return answer.jobs

    async def cancel(self, job: AsyncJob | str) -> list[str]:
        return (await self.calls.cancel(pb.CancelRequest(job=self.named(job)))).jobs

    async def logs(self, job: AsyncJob | str, task: int = 0, *, tail_lines: int = 0) -> str:
        """Output of a task so far, or its last lines."""
        request = pb.LogsRequest(job=self.named(job), task=task, tail_lines=tail_lines)
        return b"".join([chunk.text async for chunk in self.calls.logs(request)]).decode(errors="replace")

    async def follow(self, job: AsyncJob | str, task: int = 0) -> AsyncGenerator[str]:
        """Yields the output of all attempts of a task until it ends. Reconnects when the controller restarts."""
        decoder = codecs.getincrementaldecoder("utf-8")("replace")
        request = pb.LogsRequest(job=self.named(job), task=task, attempt=1, follow=True)
        while True:
            try:
                async for chunk in self.calls.logs(request):
                    request.offset = chunk.offset + len(chunk.text)
                    if text := decoder.decode(chunk.text):
                        yield text
                if not await self._has_next_attempt(request):
                    return
            except Retry:
                await self._retrying_long(lambda: self.get(job))
            else:
                request.attempt, request.offset = request.attempt + 1, 0
                decoder.reset()

    async def _has_next_attempt(self, read: pb.LogsRequest) -> bool:
        """Waits until the task ends or has a later attempt than the one read. True if there is a later attempt."""
        async with aclosing(self.watch(read.job)) as changes:
            async for change in changes:
                for task in change.tasks:
                    if task.index == read.task and (task.tries > read.attempt or task.state in _ENDED):
                        return task.tries > read.attempt
        return False

    async def workers(self) -> list[pb.Worker]:
        return (await self.cluster.workers(pb.WorkersRequest())).workers

    async def slices(self) -> list[pb.Slice]:
        return (await self.cluster.slices(pb.SlicesRequest())).slices

    async def put_blob(self, digest: str, body: bytes, sent: Callable[[int], None] = lambda _: None) -> None:
        await blob_transfer.put_blob(self.calls, self._retrying, digest, body, sent)

    async def get_blob(self, digest: str) -> bytes:
        return await blob_transfer.get_blob(self.calls, self._retrying, digest)

    async def aclose(self) -> None:
        await self._channel.__aexit__(None, None, None)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()

    async def _retrying(self, call: Callable[[], Awaitable[T]]) -> T:
        """Repeats a call while the controller restarts."""
        backoff = _RETRIES if self._reached else _FIRST_RETRIES
        answer = await retry(lambda: self._checked(call), backoff, self._clock, self._rng)
        self._reached = True
        return answer

    async def _retrying_long(self, call: Callable[[], Awaitable[T]]) -> T:
        """Repeats a call for up to an hour, provided that the controller was reached before."""
        try:
            return await self._retrying(call)
        except Retry as error:
            if not self._reached:
                raise
            log.warning("the controller does not answer; still waiting", why=error.sentence)
        return await retry(lambda: self._checked(call), _WAIT_RETRIES, self._clock, self._rng)

    async def _checked(self, call: Callable[[], Awaitable[T]]) -> T:
        try:
            return await call()
        except Retry as error:
            self._check()
            if error.code == "rpc.pin" and not self._reached:
                # Another server, or a token for another server: retries cannot succeed.
                raise Unauthenticated(error.code, error.sentence, hint=error.hint) from None
            raise

    def path(self, name: str) -> str:
        """Full name of a job. A name without a leading "/" is relative to the user or to the task's own job."""
        check_name(name)
        return name if name.startswith("/") else f"{self._prefix}/{name}"

    def named(self, job: AsyncJob | str) -> str:
        """Job id, or full name of a job that was given as an object, an id, a full name or a relative name."""
        if isinstance(job, AsyncJob):
            return job.id
        check_name(job)
        return job if _JOB_ID.fullmatch(job) else self.path(job)


def _failed_first(tasks: Iterable[pb.Task]) -> list[pb.Task]:
    """Sorts failed tasks first, so that an error is raised before results are fetched."""
    return sorted(tasks, key=lambda task: task.state != "failed")
