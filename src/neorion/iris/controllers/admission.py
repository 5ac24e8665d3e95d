"""Admission: turns each submission into one job and its tasks."""

from collections.abc import Sequence
from itertools import islice

from neorion.iris.controllers.context import ControllerContext
from neorion.iris.decide import feasible, over_quota
from neorion.iris.model import (
    AttemptId,
    AttemptState,
    Digest,
    JobId,
    JobName,
    JobSpec,
    PendingReason,
    TaskReason,
    UserQuotas,
    WorkerShape,
)
from neorion.iris.model.record import Job, Task
from neorion.iris.state import ClusterState
from neorion.keel.base import Conflict, Invalid, NotFound, QuotaExceeded, did_you_mean, nearest

# Live tasks of one user, so that one user's mistake cannot block the others.
USER_TASKS_MAX = 100_000
# Number of newest names that suggestions are made from.
_SUGGESTED_FROM = 200


class Admission:
    """Admission of submissions. `shapes` are the workers that scale groups can create."""

    def __init__(
        self, context: ControllerContext, shapes: Sequence[WorkerShape] = (), quotas: UserQuotas | None = None
    ) -> None:
        self._context = context
        self._cluster = context.cluster
        self._shapes = shapes
        self._quotas = quotas or UserQuotas()

    def check_feasible(self, spec: JobSpec) -> None:
        """Refuses a job that can never run on this cluster."""
        user, together = spec.name.user, spec.replicas if spec.placement.gang else 1
        _refuse(over_quota(self._quotas.of(user), user, spec.resources, together))
        workers, slices = self._cluster.workers, self._cluster.slices
        present = {w.id: WorkerShape(w.total, w.attributes) for w in workers.values()}
        # Workers of scale groups are in `shapes` already, and must not be counted twice.
        manual = [shape for worker, shape in present.items() if workers[worker].slice not in slices]
        offers = [offer for offer in ([*self._shapes, *manual], [*present.values()]) if offer]
        refusals = [feasible(spec.resources, spec.placement, spec.replicas, offer) for offer in offers]
        if refusals and None not in refusals:
            _refuse(refusals[0])

    def check(self, spec: JobSpec, key: str, content: Digest, owner: AttemptId | None) -> Job | None:
        """Refuses a name, a key or a number of tasks that conflicts with existing jobs. Changes nothing.

        Returns the job if the same submission has arrived before.
        """
        cluster = self._cluster
        known = cluster.keys.get((self._job_of(owner) if owner else spec.name.user, key))
        if known is not None and not _died_with_another(cluster.jobs[known], owner):
            job = cluster.jobs[known]
            if job.content != content:
                raise Conflict(
                    "iris.key_reused",
                    f"The key {key[:40]} belongs to {job.spec.name}, which is a different job.",
                    hint="Use a new key for new work.",
                )
            return job
        taken = cluster.names.get(spec.name)
        if taken is not None and not cluster.jobs[taken].state.ended:
            raise Conflict(
                "iris.name_taken",
                f"{spec.name} already exists and has not ended.",
                hint=f"Choose another name, or run: iris job cancel {spec.name}.",
            )
        live = cluster.live_tasks_of(spec.name.user)
        if live + spec.replicas > USER_TASKS_MAX:
            raise QuotaExceeded(
                "iris.user_tasks",
                f"{spec.name.user} would have {live + spec.replicas} tasks that have not ended; {USER_TASKS_MAX} are allowed.",
                hint="Wait until some have ended, or put more work into each task.",
                scope=spec.name.user,
            )
        return None

    def submit(
        self, spec: JobSpec, key: str, content: Digest, owner: AttemptId | None = None
    ) -> tuple[Job, bool]:
        """Returns the job, and whether it existed before. The caller waits for the journal before it responds.

        `owner` is the submitting attempt, if a task submits. A repeated submission returns the same job. The
        exception is a retried task, which gets a new job in place of a child that ended with an earlier attempt.
        """
        parent = self._job_of(owner) if owner else self._parent(spec.name)
        known = self.check(spec, key, content, owner)
        if known is not None:
            return known, True
        now = self._context.clock.now()
        job = Job(
            id=self._context.ids.new(JobId),
            spec=spec,
            submitted=now,
            key=key,
            content=content,
            parent=parent,
            owner=owner or AttemptId(""),
        )
        self._cluster.put_job(job)
        for index in range(spec.replicas):
            self._cluster.put_task(Task(job.id, index, now))
        self._context.wake()
        return job, False

    def _job_of(self, attempt: AttemptId) -> JobId:
        """Job of a live attempt. Read and used without a pause, so that an ending attempt leaves no job without owner."""
        found = self._cluster.attempts.get(attempt)
        if found is None or found.state is AttemptState.STOPPING:
            raise Conflict(
                "iris.parent_ending",
                "The submitting task is being stopped.",
                hint="Submit it from the next attempt of the task.",
            )
        return found.job

    def _parent(self, name: JobName) -> JobId:
        """Live job whose name is this name without its last part."""
        above = self._cluster.names.get(JobName.known(name.rpartition("/")[0]))
        return above if above is not None and not self._cluster.jobs[above].state.ended else JobId("")


def get_job(cluster: ClusterState, text: str) -> Job:
    """Finds a job by id or by name."""
    job = cluster.jobs.get(JobId(text)) or cluster.jobs.get(cluster.names.get(JobName.known(text), JobId("")))
    if job is None:
        raise NotFound(
            "iris.no_job",
            f"The job {text[:120]} does not exist.",
            hint=_suggest_name(text, cluster.names) or "List the jobs with: iris job list --all.",
        )
    return job


def _suggest_name(text: str, names: dict[JobName, JobId]) -> str:
    """Similar name among the newest, because a search of all names would take too long.

    In the same folder it is the last part of the name; otherwise it is the full name.
    """
    recent = list(islice(reversed(names), _SUGGESTED_FROM))
    folder, _, last = text.rpartition("/")
    by_last = {name.last: name for name in recent}
    beside = [name.last for name in recent if name.rpartition("/")[0] == folder]
    elsewhere = None if nearest(last, beside) else nearest(last, by_last)
    return f'did you mean "{by_last[elsewhere]}"?' if elsewhere else did_you_mean(last, beside)


def _died_with_another(job: Job, owner: AttemptId | None) -> bool:
    return bool(owner and job.owner and job.owner != owner) and job.ending.cause is TaskReason.JOB_OVER


def _refuse(reason: PendingReason | None) -> None:
    if reason is not None:
        raise Invalid("iris.infeasible", reason.sentence, hint=reason.hint)
