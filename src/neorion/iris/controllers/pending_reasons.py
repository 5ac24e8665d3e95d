"""Why jobs wait: for the scheduler, for the autoscaler, or for space on a worker's disk."""

from collections.abc import Iterator, Mapping

from neorion.iris.model import AttemptId, AttemptState, JobId, PendingCode, PendingReason, TaskState
from neorion.iris.model.record import Attempt
from neorion.iris.state import ClusterState


class PendingReasons:
    """The latest reasons of each source. The scheduler sets `scheduling`, the autoscaler sets `scaling`."""

    def __init__(self, cluster: ClusterState) -> None:
        self._cluster = cluster
        self.scheduling: Mapping[JobId, PendingReason] = {}
        # The autoscaler knows more than the scheduler: that a slice is on its way, or why none is.
        self.scaling: Mapping[JobId, PendingReason] = {}
        self._disk_waits: dict[AttemptId, JobId] = {}

    def of(self, job: JobId) -> PendingReason | None:
        """The reason why some tasks of the job wait, or None if none waits."""
        cluster = self._cluster
        if not cluster.counts[job][TaskState.PENDING]:
            stuck = self.waiting_for_disk(job)
            return PendingReason(PendingCode.WORKER_DISK, subject=stuck.worker) if stuck else None
        reason = self.scaling.get(job) or self.scheduling.get(job)
        if reason is not None:
            return reason
        waiting = (task for task in cluster.live_tasks(job) if task.state is TaskState.PENDING)
        settling = sum(task.attempt in cluster.attempts for task in waiting)
        return PendingReason(PendingCode.SETTLING, best=settling) if settling else None

    def codes(self) -> Iterator[PendingCode]:
        """One for each waiting job. It costs time for each of them."""
        found = (self.of(job) for job in self._cluster.waiting())
        return (reason.code for reason in found if reason is not None)

    def record_disk_wait(self, attempt: Attempt) -> None:
        """Its worker has no space for its files. The worker reports it again after each reconnection."""
        live = self._cluster.attempts
        self._disk_waits = {one: job for one, job in self._disk_waits.items() if one in live}
        self._disk_waits[attempt.id] = attempt.job
        self._cluster.on_change(attempt.job, attempt.index)

    def waiting_for_disk(self, job: JobId) -> Attempt | None:
        """An attempt of the job that waits for space on its worker's disk."""
        found = (
            self._cluster.attempts.get(attempt) for attempt, its in self._disk_waits.items() if its == job
        )
        return next((one for one in found if one is not None and one.state is AttemptState.ASSIGNED), None)
