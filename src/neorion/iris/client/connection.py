"""One client's conversation with a controller: what it asks about jobs, and the jobs it holds."""

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

# One question to the controller may hang this long; `wait` asks again until its own time is up.
POLL_MS: Final = 30_000
# Blobs up to this size in all travel with the submission itself.
INLINE_BYTES_MAX: Final = 2 * 1024 * 1024
# Long enough for a controller to be started anew.
_PATIENCE: Final = Backoff(first=Duration.of(ms=100), most=Duration.of(seconds=5), attempts=16)
# A controller that was never reached is more likely misspelled than starting.
_FIRST: Final = Backoff(first=Duration.of(ms=100), most=Duration.of(seconds=5), attempts=8)
# About an hour: who waits for a job of days does so through an upgrade of its controller.
_WAITING: Final = Backoff(first=Duration.of(ms=100), most=Duration.of(seconds=5), attempts=1_500)
# How much longer than the caller's time an answer may take that was asked for within it.
_ANSWER_S: Final = 5.0
_JOB_ID: Final = re.compile(r"job-[0-9a-z]{26}")
_ENDED: Final = ("succeeded", "failed", "cancelled")


class AsyncJob:
    """One submitted job. It can be awaited: `value = await job`."""

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
        """What the task writes in all of its tries, as it writes it, until it ends."""
        return self._client.follow(self, task)

    def __await__(self) -> Any:
        return self.result().__await__()

    def __repr__(self) -> str:
        return f"<Job {self.name} {self.id}>"


class ControllerConnection:
    """What can be asked of a controller. Use it as an async context manager, or close it when done.

    `check` raises where a controller that does not answer never will again.
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
        """The tasks of a job as they end, with what came along of their results; all at its end if nobody is eager."""
        if not eager:
            results = await self.ended(job)
            for task in _failed_first(results.tasks):
                yield results.job, task, results.small(task)
            return
        known: set[int] = set()
        while True:
            try:
                async with aclosing(self.watch(job)) as changes:
                    async for change in changes:
                        fresh = [
                            task for task in change.tasks if task.state in _ENDED and task.index not in known
                        ]
                        known.update(task.index for task in fresh)
                        for task in _failed_first(fresh):
                            yield change.job or pb.Job(), task, b""
            except Retry:
                # The controller starts anew; when it answers again, the watch goes on.
                await self._waiting(lambda: self.get(job))
            else:
                return

    async def send(self, spec: pb.JobSpec, payload: BlobPayload, key: str = "") -> AsyncJob:
        return await self.submit_request(await self.prepare(spec, payload, key))

    async def prepare(self, spec: pb.JobSpec, payload: BlobPayload, key: str = "") -> pb.SubmitRequest:
        """A submission, of which what is large has gone ahead."""
        # The key is made before sending, so that a submission whose answer was lost can be sent again.
        request = pb.SubmitRequest(spec=spec, key=key or self._ids.secret())
        if sum(map(len, payload.blobs.values())) <= INLINE_BYTES_MAX:
            request.blobs = [pb.Blob(digest=digest, body=body) for digest, body in payload.blobs.items()]
            return request
        await self.check_admission(request)
        for digest, body in payload.blobs.items():
            await self.put_blob(digest, body)
        return request

    async def check_admission(self, request: pb.SubmitRequest) -> None:
        """What is refused is refused before anything large is sent for it."""
        question = pb.SubmitRequest(spec=request.spec, key=request.key, dry_run=True)
        await self._steady(lambda: self.calls.submit(question))

    async def submit_request(self, request: pb.SubmitRequest) -> AsyncJob:
        """The job; handed in twice, it is the same one."""
        answer = await self._steady(lambda: self.calls.submit(request))
        return AsyncJob(self, answer.id, answer.name)

    async def wait(self, job: AsyncJob | str, timeout: float | None = None) -> Any:
        """The value; of several tasks, their values in a list. An exception of the task is raised here."""
        ended = await self.ended(self.named(job), timeout)
        return await value_of(ended, self.get_blob)

    async def ended(self, job: str, timeout: float | None = None) -> JobResults:
        """How the job ended, as soon as it has."""
        if timeout is None:
            while not (results := await self._asked(job, POLL_MS)).tasks:
                pass
            return results
        until = self._clock.monotonic() + timeout
        with anyio.move_on_after(timeout + _ANSWER_S):
            left = POLL_MS + 1
            while left > POLL_MS:
                left = max(0, round((until - self._clock.monotonic()) * 1000))
                results = await self._asked(job, min(POLL_MS, left))
                if results.tasks:
                    return results
        raise WaitTimeout(
            "iris.wait",
            f"The job has not ended within {timeout:g} s.",
            hint=f"It goes on; see why it waits with: iris why {job}.",
        )

    async def _asked(self, job: str, most_ms: int) -> JobResults:
        request = pb.WaitRequest(job=job, timeout_ms=most_ms)
        answer = await self._waiting(lambda: self.calls.wait(request, timeout_ms=POLL_MS + 10_000))
        return JobResults(answer)

    async def get(self, job: AsyncJob | str) -> pb.Job:
        return await self.calls.get(pb.GetRequest(job=self.named(job)))

    async def watch(self, job: AsyncJob | str) -> AsyncGenerator[pb.JobChange]:
        """The job as it is, then each change as it happens; ends with the job. Who was cut off asks again."""
        async for change in self.calls.watch(pb.WatchRequest(job=self.named(job))):
            yield change

    async def tasks(self, job: AsyncJob | str) -> list[pb.Task]:
        found: list[pb.Task] = []
        while True:
            page = await self.calls.tasks(pb.TasksRequest(job=self.named(job), limit=PAGE, after=len(found)))
            found += page.tasks
            if len(page.tasks) < PAGE:
                return found

    async def attempts(self, job: AsyncJob | str, task: int = 0) -> list[pb.Attempt]:
        """Every try of a task, the first one first."""
        return (await self.calls.attempts(pb.AttemptsRequest(job=self.named(job), task=task))).attempts

    async def jobs(self, prefix: str = "", states: Iterable[str] = (), limit: int = PAGE) -> list[pb.Job]:
        answer = await self.calls.list(pb.ListRequest(prefix=prefix, states=list(states), limit=limit))
        return answer.jobs

    async def cancel(self, job: AsyncJob | str) -> list[str]:
        return (await self.calls.cancel(pb.CancelRequest(job=self.named(job)))).jobs

    async def logs(self, job: AsyncJob | str, task: int = 0, *, tail_lines: int = 0) -> str:
        """What a task has written so far, or the last lines of it."""
        request = pb.LogsRequest(job=self.named(job), task=task, tail_lines=tail_lines)
        return b"".join([chunk.text async for chunk in self.calls.logs(request)]).decode(errors="replace")

    async def follow(self, job: AsyncJob | str, task: int = 0) -> AsyncGenerator[str]:
        """What a task writes in all of its tries, as it writes it, until it ends, whatever becomes of the controller meanwhile."""
        decoder = codecs.getincrementaldecoder("utf-8")("replace")
        request = pb.LogsRequest(job=self.named(job), task=task, attempt=1, follow=True)
        while True:
            try:
                async for chunk in self.calls.logs(request):
                    request.offset = chunk.offset + len(chunk.text)
                    if text := decoder.decode(chunk.text):
                        yield text
                if not await self._tried_again(request):
                    return
            except Retry:
                await self._waiting(lambda: self.get(job))
            else:
                request.attempt, request.offset = request.attempt + 1, 0
                decoder.reset()

    async def _tried_again(self, read: pb.LogsRequest) -> bool:
        """Whether there is a later try than the one that was read, as soon as that is known."""
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
        await blob_transfer.put_blob(self.calls, self._steady, digest, body, sent)

    async def get_blob(self, digest: str) -> bytes:
        return await blob_transfer.get_blob(self.calls, self._steady, digest)

    async def aclose(self) -> None:
        await self._channel.__aexit__(None, None, None)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()

    async def _steady(self, call: Callable[[], Awaitable[T]]) -> T:
        """A controller that starts anew is asked anew."""
        patience = _PATIENCE if self._reached else _FIRST
        answer = await retry(lambda: self._checked(call), patience, self._clock, self._rng)
        self._reached = True
        return answer

    async def _waiting(self, call: Callable[[], Awaitable[T]]) -> T:
        """As `_steady`, for who has nothing else to do; one that was never reached may be nowhere at all."""
        try:
            return await self._steady(call)
        except Retry as error:
            if not self._reached:
                raise
            log.warning("the controller does not answer; still waiting", why=error.sentence)
        return await retry(lambda: self._checked(call), _WAITING, self._clock, self._rng)

    async def _checked(self, call: Callable[[], Awaitable[T]]) -> T:
        try:
            return await call()
        except Retry as error:
            self._check()
            if error.code == "rpc.pin" and not self._reached:
                # Another server, or a token for another one: waiting is in vain.
                raise Unauthenticated(error.code, error.sentence, hint=error.hint) from None
            raise

    def path(self, name: str) -> str:
        """The whole name of a job: what does not begin with "/" stands below the user, or below the task's own job."""
        check_name(name)
        return name if name.startswith("/") else f"{self._prefix}/{name}"

    def named(self, job: AsyncJob | str) -> str:
        """The job somebody means: by itself, its id, its whole name, or the last part of one of their own."""
        if isinstance(job, AsyncJob):
            return job.id
        check_name(job)
        return job if _JOB_ID.fullmatch(job) else self.path(job)


def _failed_first(tasks: Iterable[pb.Task]) -> list[pb.Task]:
    """An error that is known is told before anything else is fetched."""
    return sorted(tasks, key=lambda task: task.state != "failed")
