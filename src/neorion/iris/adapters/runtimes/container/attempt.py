"""An attempt as the container runtime keeps it, and when it has to be given up."""

from dataclasses import dataclass
from enum import Enum
from typing import Final

from neorion.iris.adapters.runtimes.container import verdict
from neorion.iris.adapters.runtimes.container.attempt_store import StoredOrder
from neorion.iris.adapters.runtimes.container.engine import ContainerState, ContainerStatus
from neorion.iris.adapters.runtimes.container.runner_link import RunnerLink
from neorion.iris.adapters.runtimes.process.protocol import AttemptReport, ExitInfo
from neorion.iris.model import AttemptId, ExitKind
from neorion.iris.ports import Phase
from neorion.keel.base import Duration

# By so long after its lease a runner that cannot be reached has killed its task.
LEASE_MARGIN: Final = Duration.of(seconds=15)
# What an engine calls trouble may heal for so long: an image that is being pushed, a registry that restarts.
START_PATIENCE: Final = Duration.of(minutes=2)
# A runner that has started connects within this time, or never.
CONNECT_PATIENCE: Final = Duration.of(minutes=1)


class Creation(Enum):
    """The progress of an attempt's container."""

    NONE = 0
    ASKED = 1
    MADE = 2


@dataclass(slots=True, eq=False)
class ContainerAttempt:
    """`granted_until` is when the last lease of its runner ends; before its first, none was given and nothing runs."""

    id: AttemptId
    order: StoredOrder
    phase: Phase = Phase.BUILDING
    end: ExitInfo | None = None
    ending: bool = False
    stop_grace: Duration | None = None
    creation: Creation = Creation.NONE
    status: ContainerStatus | None = None
    status_since: float = 0.0
    link: RunnerLink | None = None
    granted_until: float | None = None

    @property
    def stop_requested(self) -> bool:
        return self.stop_grace is not None

    @property
    def report(self) -> AttemptReport:
        return AttemptReport(str(self.id), self.phase, 0, self.end)

    def observe(self, status: ContainerStatus, now: float) -> None:
        if self.status is None or (self.status.state, self.status.cause) != (status.state, status.cause):
            self.status_since = now
        if status.state is ContainerState.GONE and self.status is not None and self.status.over:
            # How it ended was seen before it was removed.
            return
        self.status = status

    def overdue(self, now: float, leased_until: float) -> ExitInfo | None:
        """Returns its end where its runner reports none; None while it may go on."""
        if self.ending or self.link is not None:
            return None
        if self.status is not None and self.status.over:
            leased = self.granted_until is not None
            return verdict.unreported(self.status, stop_requested=self.stop_requested, leased=leased)
        if self.granted_until is not None:
            why = "Its runner cannot be reached, and its lease is over."
            return self._given_up(why) if now > self.granted_until + LEASE_MARGIN.seconds else None
        if now > leased_until:
            return self._given_up("The worker was out of touch with its controller.")
        return self._hopeless(self.status, now) if self.status is not None else None

    def _hopeless(self, status: ContainerStatus, now: float) -> ExitInfo | None:
        since = now - self.status_since
        if status.state is ContainerState.WAITING and status.cause is not None:
            if status.final or since > START_PATIENCE.seconds:
                return ExitInfo(status.cause, 0, status.message)
        elif status.state is ContainerState.RUNNING and since > CONNECT_PATIENCE.seconds:
            return ExitInfo(ExitKind.NOT_STARTED, 0, "Its runner has started but does not reach its worker.")
        return None

    def _given_up(self, why: str) -> ExitInfo:
        return ExitInfo(ExitKind.STOPPED if self.stop_requested else ExitKind.LOST, 0, why)
