"""Pending reasons of jobs: from the scheduler, from the autoscaler, or for lack of disk space on a worker."""

from collections.abc import Iterator, Mapping

from neorion.iris.model import AttemptId, AttemptState, JobId, PendingCode, PendingReason, TaskState
from neorion.iris.model.record import Attempt
from neorion.iris.state import ClusterState


class PendingReasons:
    """Latest reasons of each source. The scheduler sets `scheduling`, the autoscaler sets `scaling`."""

    def __init__(self, cluster: ClusterState) -> None:
        self._cluster = cluster
        self.scheduling: Mapping[JobId, PendingReason] = {}
        # More specific than the scheduler's reasons: a slice is booting, or cannot be created.
        self.scaling: Mapping[JobId, PendingReason] = {}
        self._disk_waits: dict[AttemptId, JobId] = {}

    def of(self, job: JobId) -> PendingReason | None:
        """Reason why tasks of the job are pending, or None if none is."""
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
        """Yields the code of each pending job. It takes time for each of them."""
        found = (self.of(job) for job in self._cluster.waiting())
        return (reason.code for reason in found if reason is not None)

    def record_disk_wait(self, attempt: Attempt) -> None:
        """Records that a worker lacks disk space for an attempt. The worker reports it again after each reconnection."""
        live = self._cluster.attempts
        self._disk_waits = {one: job for one, job in self._disk_waits.items() if one in live}
        self._disk_waits[attempt.id] = attempt.job
        self._cluster.on_change(attempt.job, attempt.index)

    def waiting_for_disk(self, job: JobId) -> Attempt | None:
        """Attempt of the job that waits for space on its worker's disk, or None."""
        found = (
            self._cluster.attempts.get(attempt) for attempt, its in self._disk_waits.items() if its == job
        )
        return next((one for one in found if one is not None and one.state is AttemptState.ASSIGNED), None)
