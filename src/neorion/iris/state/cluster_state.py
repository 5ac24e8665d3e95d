"""State of the cluster in memory, with the indexes for decisions and responses."""

from collections.abc import Iterator
from dataclasses import replace

from neorion.iris.model import (
    AttemptId,
    AttemptState,
    ClusterView,
    Constraint,
    JobId,
    JobName,
    JobView,
    Op,
    PriorityBand,
    Resources,
    RunningView,
    SliceId,
    TaskState,
    UserQuotas,
    WorkerId,
    WorkerState,
    WorkerView,
)
from neorion.iris.model.record import Attempt, Job, Slice, Task, Worker
from neorion.iris.state.journal import Journal
from neorion.keel.base import Callbacks

_NOTHING = Resources()
# Attribute with which a job avoids workers. Users' attributes have no spaces.
_ITSELF = "the worker itself"


class ClusterState:
    """Records by id, with indexes. `put_*` is the only way to change them: it updates every index and writes the journal.

    Only live attempts are in memory; ended ones are rows of the store.
    """

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self.jobs: dict[JobId, Job] = {}
        self.tasks: dict[JobId, list[Task]] = {}
        self.attempts: dict[AttemptId, Attempt] = {}
        self.workers: dict[WorkerId, Worker] = {}
        self.slices: dict[SliceId, Slice] = {}
        self.names: dict[JobName, JobId] = {}
        self.keys: dict[tuple[str, str], JobId] = {}
        # Jobs with a limit for waiting that have not ended.
        self.jobs_with_wait_limit: dict[JobId, None] = {}
        self.children: dict[JobId, dict[JobId, None]] = {}
        # Jobs that have not ended, by the attempt that submitted them.
        self.child_jobs: dict[AttemptId, dict[JobId, None]] = {}
        self.counts: dict[JobId, dict[TaskState, int]] = {}
        self.attempts_on_worker: dict[WorkerId, dict[AttemptId, RunningView]] = {}
        # Called at every change of a job, with an index if one of its tasks changed.
        self.on_change: Callbacks[[JobId, int | None]] = Callbacks()
        self._waiting: dict[JobId, dict[int, None]] = {}
        # Workers that had no room for a job's files, from its ended attempts.
        self._avoided: dict[JobId, dict[WorkerId, None]] = {}
        self._used: dict[WorkerId, Resources] = {}
        self._live: dict[str, int] = {}

    # Changes.

    def put_job(self, job: Job) -> None:
        self._journal.note("job", job.id, job)
        self.index_job(job)
        self.on_change(job.id, None)

    def put_task(self, task: Task) -> None:
        self._journal.note("task", f"{task.job}/{task.index:08d}", task)
        self.index_task(task)
        self.on_change(task.job, task.index)

    def put_attempt(self, attempt: Attempt) -> None:
        self._journal.note("attempt", f"{attempt.job}/{attempt.index:08d}/{attempt.number:06d}", attempt)
        self.index_attempt(attempt)
        self.on_change(attempt.job, attempt.index)

    def put_worker(self, worker: Worker) -> None:
        self._journal.note("worker", worker.id, worker)
        self.index_worker(worker)

    def put_slice(self, slice_: Slice) -> None:
        self._journal.note("slice", slice_.id, slice_)
        self.slices[slice_.id] = slice_

    # Deletions.

    def drop_job(self, job: JobId) -> None:
        record = self.jobs.pop(job)
        self.on_change(job, None)
        self._journal.note("job", job, None)
        self._journal.erase(job)
        del self.tasks[job], self.counts[job]
        self._waiting.pop(job, None)
        self.jobs_with_wait_limit.pop(job, None)
        if self.names.get(record.spec.name) == job:
            del self.names[record.spec.name]
        if self.keys.get(record.dedup_key) == job:
            del self.keys[record.dedup_key]
        self.children.pop(job, None)
        self.children.get(record.parent, {}).pop(job, None)

    def drop_worker(self, worker: WorkerId) -> None:
        del self.workers[worker], self.attempts_on_worker[worker], self._used[worker]
        self._journal.note("worker", worker, None)

    def drop_slice(self, slice_: SliceId) -> None:
        del self.slices[slice_]
        self._journal.note("slice", slice_, None)

    # Indexes, which `load` also fills from the store without a journal entry.

    def index_job(self, job: Job) -> None:
        self.jobs[job.id] = job
        self.names[job.spec.name] = job.id
        if job.key:
            self.keys[job.dedup_key] = job.id
        if job.spec.limits.wait is not None and not job.state.ended:
            self.jobs_with_wait_limit[job.id] = None
        else:
            self.jobs_with_wait_limit.pop(job.id, None)
        if job.state.ended:
            self._avoided.pop(job.id, None)
        if job.parent:
            self.children.setdefault(job.parent, {})[job.id] = None
        if job.owner:
            self._index_child(job)
        if job.id not in self.tasks:
            self.tasks[job.id] = []
            self.counts[job.id] = dict.fromkeys(TaskState, 0)

    def _index_child(self, job: Job) -> None:
        children = self.child_jobs.setdefault(job.owner, {})
        if job.state.ended:
            children.pop(job.id, None)
        else:
            children[job.id] = None
        if not children:
            del self.child_jobs[job.owner]

    def index_task(self, task: Task) -> None:
        tasks, counts = self.tasks[task.job], self.counts[task.job]
        user = self.jobs[task.job].spec.name.user
        lived = False
        if task.index == len(tasks):
            tasks.append(task)
        else:
            before = tasks[task.index].state
            lived = not before.ended
            counts[before] -= 1
            tasks[task.index] = task
        counts[task.state] += 1
        self._live[user] = self._live.get(user, 0) + (not task.state.ended) - lived
        if task.state is TaskState.PENDING:
            self._enqueue(task)
        elif (waiting := self._waiting.get(task.job)) is not None:
            waiting.pop(task.index, None)
            if not waiting:
                del self._waiting[task.job]

    def index_attempt(self, attempt: Attempt) -> None:
        if attempt.state.ended:
            self._release(attempt)
            return
        before = self.attempts.get(attempt.id)
        self.attempts[attempt.id] = attempt
        if before is None:
            self._allocate(attempt)
        elif attempt.state is AttemptState.STOPPING and before.state is not attempt.state:
            placed = self.attempts_on_worker[attempt.worker]
            placed[attempt.id] = replace(placed[attempt.id], stopping=True)

    def index_worker(self, worker: Worker) -> None:
        self.workers[worker.id] = worker
        self.attempts_on_worker.setdefault(worker.id, {})
        self._used.setdefault(worker.id, _NOTHING)

    def avoid_worker(self, job: JobId, worker: WorkerId) -> bool:
        """Prefers other workers for this job from now on. False if it has no worker left that it does not avoid."""
        avoided = self._avoided.setdefault(job, {})
        avoided[worker] = None
        return any(other.id not in avoided for other in self._open())

    # Views.

    def view(self, caps: UserQuotas) -> ClusterView:
        workers = [
            WorkerView(
                w.id,
                w.slice,
                {**w.attributes, _ITSELF: w.id} if self._avoided else w.attributes,
                w.total,
                w.total - self._used[w.id],
            )
            for w in self._open()
        ]
        jobs = [
            self._job_view(self.jobs[job], list(waiting))
            for job, waiting in self._waiting.items()
            if self._complete(job, waiting)
        ]
        running = [view for placed in self.attempts_on_worker.values() for view in placed.values()]
        return ClusterView(workers, jobs, running, caps)

    def _open(self) -> Iterator[Worker]:
        """Workers that accept work."""
        return (w for w in self.workers.values() if w.state is WorkerState.READY and not w.draining)

    def free(self, worker: WorkerId) -> Resources:
        """Free resources, never negative: a worker that returned smaller may run more than it has room for."""
        left = self.workers[worker].total - self._used[worker]
        return Resources(
            max(0, left.cpu_milli),
            max(0, left.memory),
            max(0, left.disk),
            max(0, left.gpus),
            left.gpu_variant,
        )

    def waiting(self) -> Iterator[JobId]:
        """Jobs with pending tasks."""
        return iter(self._waiting)

    def queue(self) -> dict[PriorityBand, int]:
        """Number of pending tasks per band."""
        found: dict[PriorityBand, int] = {}
        for job, waiting in self._waiting.items():
            band = self.jobs[job].spec.band
            found[band] = found.get(band, 0) + len(waiting)
        return found

    def waits(self) -> bool:
        return bool(self._waiting)

    def live_tasks_of(self, user: str) -> int:
        return self._live.get(user, 0)

    def live_tasks(self, job: JobId) -> Iterator[Task]:
        return (task for task in self.tasks[job] if not task.state.ended)

    def _enqueue(self, task: Task) -> None:
        """Queues a task once its previous attempt has ended, so that it never runs twice at once."""
        if task.attempt not in self.attempts:
            self._waiting.setdefault(task.job, {})[task.index] = None

    def _complete(self, job: JobId, waiting: dict[int, None]) -> bool:
        """True unless a task of a gang is not ready to start."""
        return not self.jobs[job].spec.placement.gang or len(waiting) == self.counts[job][TaskState.PENDING]

    def _job_view(self, job: Job, waiting: list[int]) -> JobView:
        spec = job.spec
        beside: list[WorkerId] = []
        if spec.placement.spread:
            running = (self.attempts.get(task.attempt) for task in self.tasks[job.id])
            beside = [attempt.worker for attempt in running if attempt is not None]
        placement, avoided = spec.placement, self._avoided.get(job.id, ())
        if avoided:
            others = (Constraint(_ITSELF, Op.NE, (worker,), required=False) for worker in avoided)
            placement = replace(placement, constraints=(*placement.constraints, *others))
        return JobView(
            job.id, spec.name.user, spec.band, spec.resources, placement, job.submitted, waiting, beside
        )

    def _allocate(self, attempt: Attempt) -> None:
        spec = self.jobs[attempt.job].spec
        self.attempts_on_worker[attempt.worker][attempt.id] = RunningView(
            attempt=attempt.id,
            job=attempt.job,
            worker=attempt.worker,
            user=spec.name.user,
            band=spec.band,
            resources=spec.resources,
            gang=bool(spec.placement.gang),
            started=attempt.assigned,
            stopping=attempt.state is AttemptState.STOPPING,
        )
        self._used[attempt.worker] = self._used[attempt.worker] + spec.resources

    def _release(self, attempt: Attempt) -> None:
        if self.attempts.pop(attempt.id, None) is None:
            return
        view = self.attempts_on_worker.get(attempt.worker, {}).pop(attempt.id, None)
        if view is not None:
            self._used[attempt.worker] = self._used[attempt.worker] - view.resources
        task = self.tasks[attempt.job][attempt.index]
        if task.state is TaskState.PENDING:
            self._enqueue(task)
