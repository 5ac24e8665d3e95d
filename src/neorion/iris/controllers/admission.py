"""Accepting work: a submission becomes a job and its tasks, once."""

from collections.abc import Sequence
from itertools import islice

from neorion.iris.controllers.context import ControllerContext
from neorion.iris.decide import beyond_cap, feasible
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

# Live tasks of one user: above it one person's mistake becomes everybody's wait.
USER_TASKS_MAX = 100_000
# A suggestion is made from so many names, the newest ones.
_SUGGESTED_FROM = 200


class Admission:
    """Accepts submissions. `shapes` are the workers that scale groups can bring."""

    def __init__(
        self, context: ControllerContext, shapes: Sequence[WorkerShape] = (), quotas: UserQuotas | None = None
    ) -> None:
        self._context = context
        self._cluster = context.cluster
        self._shapes = shapes
        self._quotas = quotas or UserQuotas()

    def check_feasible(self, spec: JobSpec) -> None:
        """Refuses what could never run here."""
        user, together = spec.name.user, spec.replicas if spec.placement.gang else 1
        _refuse(beyond_cap(self._quotas.of(user), user, spec.resources, together))
        workers, slices = self._cluster.workers, self._cluster.slices
        present = {w.id: WorkerShape(w.total, w.attributes) for w in workers.values()}
        # Workers of scale groups are among `shapes`, and are not counted twice.
        manual = [shape for worker, shape in present.items() if workers[worker].slice not in slices]
        offers = [offer for offer in ([*self._shapes, *manual], [*present.values()]) if offer]
        refusals = [feasible(spec.resources, spec.placement, spec.replicas, offer) for offer in offers]
        if refusals and None not in refusals:
            _refuse(refusals[0])

    def check(self, spec: JobSpec, key: str, content: Digest, owner: AttemptId | None) -> Job | None:
        """Refuses a name, a key or a number of tasks that conflicts with what exists. Changes nothing.

        Returns the job if the same submission has arrived before.
        """
        cluster = self._cluster
        known = cluster.keys.get((self._job_of(owner) if owner else spec.name.user, key))
        if known is not None and not _died_with_another(cluster.jobs[known], owner):
            job = cluster.jobs[known]
            if job.content != content:
                raise Conflict(
                    "iris.key_reused",
                    f"The key {key[:40]} belongs to {job.spec.name}, which is another job.",
                    hint="Use a new key for new work.",
                )
            return job
        taken = cluster.names.get(spec.name)
        if taken is not None and not cluster.jobs[taken].state.ended:
            raise Conflict(
                "iris.name_taken",
                f"{spec.name} is already there and has not ended.",
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
        """Returns the job, and whether it existed before. The caller waits for the journal before it answers.

        `owner` is the attempt that submits, if a task does. The same submission is the same job, however often it
        arrives. Only a task that is tried again gets a new job in place of a child that ended with an earlier attempt.
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
        """Read and used in one step: otherwise an attempt that is stopped in between leaves a job without an owner."""
        found = self._cluster.attempts.get(attempt)
        if found is None or found.state is AttemptState.STOPPING:
            raise Conflict(
                "iris.parent_ending",
                "The task that submits this is being stopped.",
                hint="Submit it from the next attempt of the task.",
            )
        return found.job

    def _parent(self, name: JobName) -> JobId:
        """The live job whose name is the name without its last part."""
        above = self._cluster.names.get(JobName.known(name.rpartition("/")[0]))
        return above if above is not None and not self._cluster.jobs[above].state.ended else JobId("")


def get_job(cluster: ClusterState, text: str) -> Job:
    """By id or by name."""
    job = cluster.jobs.get(JobId(text)) or cluster.jobs.get(cluster.names.get(JobName.known(text), JobId("")))
    if job is None:
        raise NotFound(
            "iris.no_job",
            f"There is no job {text[:120]}.",
            hint=_suggest_name(text, cluster.names) or "see them with: iris job list --all",
        )
    return job


def _suggest_name(text: str, names: dict[JobName, JobId]) -> str:
    """The likely name among the newest: unknown names must not cost time for each job.

    Beside it the last part of a name is enough; for another user's job, or a task's child, it takes the whole name.
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
