"""Accepting work: a submission becomes a job and its tasks, once."""

from itertools import islice

from neorion.iris.controllers.context import ControllerContext
from neorion.iris.model import AttemptId, AttemptState, Digest, JobId, JobName, JobSpec, TaskReason
from neorion.iris.model.record import Job, Task
from neorion.keel.base import Conflict, NotFound, QuotaExceeded, did_you_mean, nearest

# Live tasks of one user: above it one person's mistake becomes everybody's wait.
USER_TASKS_MAX = 100_000
# A suggestion is made from so many names, the newest ones.
_SUGGESTED_FROM = 200


def submit(
    context: ControllerContext, spec: JobSpec, key: str, content: Digest, owner: AttemptId | None = None
) -> tuple[Job, bool]:
    """The job, and whether it was there before. Nothing is acknowledged until the journal is durable.

    `owner` is the attempt that asks, if a task does. The same submission is the same job, however often it arrives; only
    a task that is tried again gets a new one for a child that died with an earlier try.
    """
    cluster = context.cluster
    parent = _job_of(context, owner) if owner else _parent(context, spec.name)
    known = check_admission(context, spec, key, content, owner)
    if known is not None:
        return known, True
    now = context.clock.now()
    job = Job(
        id=context.ids.new(JobId),
        spec=spec,
        submitted=now,
        key=key,
        content=content,
        parent=parent,
        owner=owner or AttemptId(""),
    )
    cluster.put_job(job)
    for index in range(spec.replicas):
        cluster.put_task(Task(job.id, index, now))
    context.wake()
    return job, False


def check_admission(
    context: ControllerContext, spec: JobSpec, key: str, content: Digest, owner: AttemptId | None
) -> Job | None:
    """Refuses what cannot be taken beside what is there; the job itself if it is there already. Changes nothing."""
    cluster = context.cluster
    known = cluster.keys.get((_job_of(context, owner) if owner else spec.name.user, key))
    if known is not None and not _died_with_another(cluster.jobs[known], owner):
        job = cluster.jobs[known]
        if job.content != content:
            raise Conflict(
                "iris.key_reused",
                f"The key {key[:40]} belongs to {job.spec.name}, which is another job.",
                hint="use a new key for new work",
            )
        return job
    taken = cluster.names.get(spec.name)
    if taken is not None and not cluster.jobs[taken].state.ended:
        raise Conflict(
            "iris.name_taken",
            f"{spec.name} is already there and has not ended.",
            hint=f"choose another name, or: iris job cancel {spec.name}",
        )
    live = cluster.live_tasks_of(spec.name.user)
    if live + spec.replicas > USER_TASKS_MAX:
        raise QuotaExceeded(
            "iris.user_tasks",
            f"{spec.name.user} would have {live + spec.replicas} tasks that have not ended; {USER_TASKS_MAX} are allowed.",
            hint="wait for some to end, or put more work into each task",
            scope=spec.name.user,
        )
    return None


def get_job(context: ControllerContext, text: str) -> Job:
    """By id or by name."""
    cluster = context.cluster
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


def _job_of(context: ControllerContext, attempt: AttemptId) -> JobId:
    """Asked for and used in one step: a task that is told to stop in between would leave a job without an owner."""
    found = context.cluster.attempts.get(attempt)
    if found is None or found.state is AttemptState.STOPPING:
        raise Conflict(
            "iris.parent_ending",
            "The task that submits this is being stopped.",
            hint="a task that is tried again submits its jobs again",
        )
    return found.job


def _parent(context: ControllerContext, name: JobName) -> JobId:
    """The live job whose name is the name without its last part."""
    above = context.cluster.names.get(JobName.known(name.rpartition("/")[0]))
    return above if above is not None and not context.cluster.jobs[above].state.ended else JobId("")
