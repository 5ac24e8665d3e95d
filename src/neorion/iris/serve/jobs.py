"""Job service, for clients and tasks."""

import hashlib
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass

import anyio

from neorion.iris.controllers.admission import Admission, get_job
from neorion.iris.controllers.audit_log import AuditLog, AuditScope
from neorion.iris.controllers.blob_store import BlobStore
from neorion.iris.controllers.blob_upload import BlobUploads
from neorion.iris.controllers.context import ControllerContext
from neorion.iris.controllers.job_watch import JobWatchHub
from neorion.iris.controllers.lifecycle import LifecycleManager
from neorion.iris.controllers.log_store import LogStore
from neorion.iris.model import Digest, JobId, JobName, JobState, TaskReason, wire
from neorion.iris.model.gen import iris_pb as pb
from neorion.iris.model.gen.iris_connect import JobService
from neorion.iris.model.inherit import inherit
from neorion.iris.model.record import Attempt, Job, Task
from neorion.iris.model.spec import Command
from neorion.iris.serve.authorization import check_own_name, check_owner, check_reader
from neorion.iris.serve.messages import JobMessages
from neorion.iris.serve.task_auth import check_in_subtree, check_is_child, current_task
from neorion.iris.state import attempts_of
from neorion.keel.base import Duration, Invalid, NotFound, Retry
from neorion.keel.rpc import caller
from neorion.keel.rpc.paging import page_size

# Results up to this total size are part of the response that a job has ended.
RESULTS_BYTES_MAX = 2 * 1024 * 1024
PAGE_MAX = 500
PART_BYTES_MAX = 4 * 1024 * 1024

# Delay before a retry while the store accepts no changes.
_STORE_RETRY = Duration.of(seconds=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class JobEndpoint(JobService):
    """Endpoint of JobService."""

    context: ControllerContext
    audit_log: AuditLog
    admission: Admission
    lifecycle: LifecycleManager
    blobs: BlobStore
    uploads: BlobUploads
    log_store: LogStore
    watches: JobWatchHub
    messages: JobMessages

    async def submit(self, request: pb.SubmitRequest, ctx: object) -> pb.SubmitResponse:
        message = request.spec
        if message is None:
            raise Invalid("iris.spec", "The submission has no job in it.", hint="Fill in its spec.")
        async with self.audit_log.entry(caller().name, "Submit", message.name) as entry:
            return await self._submit(request, message, entry)

    async def _submit(
        self, request: pb.SubmitRequest, message: pb.JobSpec, entry: AuditScope
    ) -> pb.SubmitResponse:
        content = Digest(hashlib.sha256(wire.dedup_content(message)).hexdigest())
        task = current_task()
        if task is not None:
            inherit(message, self._find(task.job).spec)
        spec = wire.spec(message, JobName(message.name))
        check_own_name(spec.name)
        check_is_child(spec.name)
        self.admission.check_feasible(spec)
        owner = task.attempt if task else None
        if request.dry_run:
            self.admission.check(spec, request.key, content, owner)
            # The blobs are sent with the real submission.
            entry.drop()
            return pb.SubmitResponse(name=spec.name)
        needed = [*spec.inputs, *([] if isinstance(spec.entry, Command) else [spec.entry.function])]
        if spec.environment.bundle:
            needed.append(spec.environment.bundle)
        sent = {blob.digest for blob in request.blobs}
        for digest in needed:
            if digest not in sent and not await self.blobs.has(digest):
                raise Invalid(
                    "iris.blob_missing",
                    f"The blob {digest} was not sent.",
                    hint="Send the blob first, or with the job.",
                )
        for blob in request.blobs:
            await self.blobs.put(wire.digest(blob.digest), blob.body)
        job, existed = self.admission.submit(spec, request.key, content, owner)
        entry.done()
        await self.context.journal.wait_durable()
        return pb.SubmitResponse(id=job.id, name=job.spec.name, existed=existed)

    async def wait(self, request: pb.WaitRequest, ctx: object) -> pb.WaitResponse:
        job = self._find(request.job)
        check_reader(job.spec.name)
        if not job.state.ended:
            with anyio.move_on_after(max(0, request.timeout_ms) / 1000):
                await self.context.job_ended.listen(job.id).wait()
        job = get_job(self.context.cluster, job.id)
        tasks = list(self.context.cluster.tasks[job.id]) if job.state.ended else []
        answer = pb.WaitResponse(
            job=self.messages.job(job), tasks=[self.messages.task(task) for task in tasks]
        )
        # The response is built first, and everything in it is in the store before it is sent.
        await self._check_saved(job)
        room = RESULTS_BYTES_MAX
        for task in tasks:
            if task.ending.result and task.ending.result_bytes <= room:
                room -= task.ending.result_bytes
                body = await self.blobs.get(task.ending.result)
                answer.results.append(pb.Blob(digest=task.ending.result, body=body))
        return answer

    async def get(self, request: pb.GetRequest, ctx: object) -> pb.Job:
        job = self._find(request.job)
        answer = self.messages.job(job)
        await self._hide_unsaved_ends([answer])
        return answer

    async def list(self, request: pb.ListRequest, ctx: object) -> pb.ListResponse:
        limit = page_size(request.limit, PAGE_MAX)
        task = current_task()
        within = f"{task.job}/" if task is not None else ""
        # Ids sort by creation time. Pages are in descending order, and each continues below the last id of the one
        # before. Jobs of one millisecond are in the order of their ids, not of their arrival.
        jobs = self.context.cluster.jobs
        matching = [
            job
            for job in map(jobs.__getitem__, sorted(jobs, reverse=True))
            if (not request.after or job.id < request.after)
            and (not request.states or job.state in request.states)
            and job.spec.name.startswith(request.prefix)
            and job.spec.name.startswith(within)
        ][: limit + 1]
        more = matching[limit - 1].id if len(matching) > limit else ""
        answer = pb.ListResponse(jobs=[self.messages.job(job) for job in matching[:limit]], next=more)
        await self._hide_unsaved_ends(answer.jobs)
        return answer

    async def tasks(self, request: pb.TasksRequest, ctx: object) -> pb.TasksResponse:
        job = self._find(request.job)
        matching = [
            task
            for task in self.context.cluster.tasks[job.id][max(0, request.after) :]
            if not request.states or task.state in request.states
        ]
        page = matching[: page_size(request.limit, PAGE_MAX)]
        answer = pb.TasksResponse(tasks=[self.messages.task(task) for task in page])
        await self._check_saved(job)
        return answer

    async def attempts(self, request: pb.AttemptsRequest, ctx: object) -> pb.AttemptsResponse:
        job = self._find(request.job)
        self._task(job, request.task)
        # Ended attempts are only in the store, which has all of them once it is up to date.
        await self._check_saved(job)
        found = await attempts_of(self.context.store, job.id, request.task)
        return pb.AttemptsResponse(attempts=[self.messages.attempt(job, attempt) for attempt in found])

    async def cancel(self, request: pb.CancelRequest, ctx: object) -> pb.CancelResponse:
        async with self.audit_log.entry(caller().name, "Cancel", request.job) as entry:
            job = self._find(request.job)
            entry.about(job.spec.name)
            check_owner(job.spec.name)
            if request.dry_run:
                entry.drop()
                return pb.CancelResponse(jobs=[] if job.state.ended else [job.spec.name])
            cancelled = self.lifecycle.cancel(job.id, TaskReason.CANCELLED)
            entry.done()
            await self.context.journal.wait_durable()
        return pb.CancelResponse(jobs=[self.context.cluster.jobs[one].spec.name for one in cancelled])

    async def watch(self, request: pb.WatchRequest, ctx: object) -> AsyncIterator[pb.JobChange]:
        job = self._find(request.job)
        with self.watches.watch(job.id) as watcher:
            tasks, caught_up = list(range(job.spec.replicas)), False
            while True:
                # A message is limited in size. The other tasks follow, in their state of that moment.
                page, tasks = tasks[:PAGE_MAX], tasks[PAGE_MAX:]
                caught_up = caught_up or not tasks
                change = self._change(job.id, page)
                change.caught_up = caught_up
                over = not tasks and change.job is not None and change.job.ended_ms > 0
                # Commit before sending: a client must not see a state that a crash could undo.
                await self.context.journal.wait_durable()
                yield change
                if over:
                    return
                if not tasks:
                    await watcher.changed()
                    tasks = watcher.take()

    def _change(self, job_id: JobId, tasks: Sequence[int]) -> pb.JobChange:
        job = get_job(self.context.cluster, job_id)
        known = self.context.cluster.tasks[job.id]
        return pb.JobChange(
            job=self.messages.job(job),
            tasks=[self.messages.task(known[index]) for index in tasks],
        )

    async def logs(self, request: pb.LogsRequest, ctx: object) -> AsyncIterator[pb.LogChunk]:
        job = self._find(request.job)
        check_reader(job.spec.name)
        while request.follow and self._has_no_attempt(job, request.task):
            await self.context.first_attempt_started.listen(job.id).wait()
        attempt = await self._attempt(job, request)
        live = attempt.id in self.context.cluster.attempts
        start = max(0, request.offset)
        if request.tail_lines > 0:
            start = max(start, await self.log_store.line_start(job.id, attempt.id, request.tail_lines))
        async for offset, text in self.log_store.read(
            job.id, attempt.id, start, follow=request.follow and live
        ):
            yield pb.LogChunk(offset=offset, text=text, attempt=attempt.id)

    async def get_blob(self, request: pb.GetBlobRequest, ctx: object) -> pb.BlobPart:
        digest = wire.digest(request.digest)
        body, size = await self.blobs.part(digest, max(0, request.offset), PART_BYTES_MAX)
        return pb.BlobPart(body=body, size=size)

    async def put_blob(self, request: pb.PutBlobRequest, ctx: object) -> pb.PutBlobResponse:
        digest = wire.digest(request.digest)
        await self.uploads.take(caller().name, digest, request.offset, request.body, last=request.last)
        if request.last:
            await self.context.journal.wait_durable()
        return pb.PutBlobResponse()

    def _find(self, text: str) -> Job:
        """Finds a job by id or by name, if the caller may access it."""
        job = get_job(self.context.cluster, text)
        check_in_subtree(job.spec.name)
        return job

    async def _hide_unsaved_ends(self, jobs: Sequence[pb.Job]) -> None:
        """Waits until the store has all changes of jobs that are in memory.

        While the store accepts no changes, jobs can still be read, but an end that is not stored is hidden: a crash
        would undo it.
        """
        journal = self.context.journal
        if not await journal.wait_readable():
            return
        unsaved = journal.unsaved_jobs()
        for job in jobs:
            if job.id in unsaved and job.ended_ms:
                job.state, job.ended_ms, job.ending = JobState.RUNNING, 0, None

    async def _check_saved(self, job: Job) -> None:
        """Waits until the job is stored. Single tasks have no earlier state to show, so the call is refused with the reason."""
        journal = self.context.journal
        if (trouble := await journal.wait_readable()) and job.id in journal.unsaved_jobs():
            raise Retry(
                "iris.store_full",
                f"The state of {job.spec.name} is not stored, because the store accepts no changes: {trouble}",
                hint="Free space on the controller's disk.",
                after=_STORE_RETRY,
            )

    def _has_no_attempt(self, job: Job, index: int) -> bool:
        tasks = self.context.cluster.tasks.get(job.id, [])
        return 0 <= index < len(tasks) and not tasks[index].tries and not tasks[index].state.ended

    def _task(self, job: Job, index: int) -> Task:
        tasks = self.context.cluster.tasks[job.id]
        if not 0 <= index < len(tasks):
            raise NotFound(
                "iris.no_task",
                f"{job.spec.name} has tasks 0 to {len(tasks) - 1}.",
                hint=f"See them with: iris task list {job.spec.name}.",
            )
        return tasks[index]

    async def _attempt(self, job: Job, request: pb.LogsRequest) -> Attempt:
        live = self.context.cluster.attempts.get(self._task(job, request.task).attempt)
        if live is not None and request.attempt in (0, live.number):
            return live
        past = await attempts_of(self.context.store, job.id, request.task)
        chosen = [one for one in past if request.attempt in (0, one.number)]
        if not chosen:
            problem = "has no such attempt" if past or live else "has no attempt yet"
            see = f"task attempts {job.spec.name} {request.task}" if past or live else f"why {job.spec.name}"
            raise NotFound(
                "iris.no_attempt",
                f"Task {request.task} of {job.spec.name} {problem}.",
                hint=f"Run: iris {see}.",
            )
        return chosen[-1]
