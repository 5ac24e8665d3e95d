"""The scheduler's tick: view, plan, re-check, carry out."""

from neorion.iris.controllers.context import ControllerContext
from neorion.iris.controllers.lifecycle import LifecycleManager
from neorion.iris.decide import SchedulePlan, schedule
from neorion.iris.model import JobId, StopCause, TaskState, UserQuotas, WorkerId, WorkerState
from neorion.keel.base import Callbacks
from neorion.keel.telemetry import logger

log = logger(__name__)

# Where tasks that ask for ports find theirs: below the range from which kernels choose for themselves, and above the ports
# of drydock's clusters, which may stand on the same machine.
PORT_FIRST, PORT_LAST = 23_000, 29_999


class Scheduler:
    """Assigns waiting tasks to workers, and records why the others still wait."""

    def __init__(self, context: ControllerContext, lifecycle: LifecycleManager, caps: UserQuotas) -> None:
        self._context = context
        self._cluster = context.cluster
        self._lifecycle = lifecycle
        self._caps = caps
        self._next_port: dict[str, int] = {}
        self.plan: SchedulePlan | None = None
        self.on_pass: Callbacks[[]] = Callbacks()

    async def tick(self) -> None:
        if self._cluster.waits():
            began = self._context.clock.monotonic()
            plan = schedule(self._cluster.view(self._caps), self._context.clock.now())
            self._context.metrics.passed(self._context.clock.monotonic() - began)
            self.plan = plan
            self._context.reasons.scheduling = plan.reasons
            self._carry_out(plan)
        else:
            self.plan, self._context.reasons.scheduling = None, {}
        self.on_pass()

    def _carry_out(self, plan: SchedulePlan) -> None:
        for preemption in plan.preemptions:
            attempt = self._cluster.attempts.get(preemption.attempt)
            if attempt is not None:
                self._lifecycle.stop(attempt, StopCause.PREEMPTED)
        # The plan is of a moment ago; what it rests on is looked at once more.
        places = [
            (job, index, worker, self._ports(job, worker))
            for job, index, worker in plan.assignments
            if self._fits(job, index, worker)
        ]
        meets = {job: self._address(worker, ports) for job, index, worker, ports in places if index == 0}
        for job, index, worker, ports in places:
            self._lifecycle.begin(job, index, worker, ports, meets.get(job, ""))

    def _fits(self, job: JobId, index: int, worker: WorkerId) -> bool:
        host = self._cluster.workers.get(worker)
        pending = self._cluster.tasks[job][index].state is TaskState.PENDING
        return pending and host is not None and host.state is WorkerState.READY

    def _address(self, worker: WorkerId, ports: tuple[int, ...]) -> str:
        """Where a gang meets: the last port is nobody's by name."""
        return f"{self._cluster.workers[worker].host}:{ports[-1]}" if ports else ""

    def _ports(self, job: JobId, worker: WorkerId) -> tuple[int, ...]:
        spec = self._cluster.jobs[job].spec
        # A gang's first task needs one more to meet at; which task is first is not known here, so each has one.
        count = len(spec.ports) + bool(spec.placement.gang)
        host = self._cluster.workers[worker].host
        # Begun anywhere: another cluster on the same host, or this one before its restart, may hold any of them.
        first = self._next_port.get(host) or self._context.rng.randrange(PORT_FIRST, PORT_LAST)
        if first + count > PORT_LAST:
            first = PORT_FIRST
        self._next_port[host] = first + count
        return tuple(range(first, first + count))
