"""Scheduler loop: builds a view, plans, checks again and applies the plan."""

from neorion.iris.controllers.context import ControllerContext
from neorion.iris.controllers.lifecycle import LifecycleManager
from neorion.iris.decide import SchedulePlan, schedule
from neorion.iris.model import JobId, StopCause, TaskState, UserQuotas, WorkerId, WorkerState
from neorion.keel.base import Callbacks
from neorion.keel.telemetry import logger

log = logger(__name__)

# Range of ports for tasks: below the range of ephemeral ports, and above the ports of drydock's clusters, which
# may run on the same machine.
PORT_FIRST, PORT_LAST = 23_000, 29_999


class Scheduler:
    """Controller that assigns pending tasks to workers, and records why the others are pending."""

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
        # The records may have changed since the plan was made.
        assignments = [
            (job, index, worker, self._ports(job, worker))
            for job, index, worker in plan.assignments
            if self._fits(job, index, worker)
        ]
        meets = {job: self._address(worker, ports) for job, index, worker, ports in assignments if index == 0}
        for job, index, worker, ports in assignments:
            self._lifecycle.begin(job, index, worker, ports, meets.get(job, ""))

    def _fits(self, job: JobId, index: int, worker: WorkerId) -> bool:
        host = self._cluster.workers.get(worker)
        pending = self._cluster.tasks[job][index].state is TaskState.PENDING
        return pending and host is not None and host.state is WorkerState.READY

    def _address(self, worker: WorkerId, ports: tuple[int, ...]) -> str:
        """Rendezvous address of a gang: the last port, which has no name."""
        return f"{self._cluster.workers[worker].host}:{ports[-1]}" if ports else ""

    def _ports(self, job: JobId, worker: WorkerId) -> tuple[int, ...]:
        spec = self._cluster.jobs[job].spec
        # The first task of a gang needs one more port for the rendezvous. The first task is unknown here, so each gets one.
        count = len(spec.ports) + bool(spec.placement.gang)
        host = self._cluster.workers[worker].host
        # A random start, because another cluster on the host, or this one before a restart, may use any of these ports.
        first = self._next_port.get(host) or self._context.rng.randrange(PORT_FIRST, PORT_LAST)
        if first + count > PORT_LAST:
            first = PORT_FIRST
        self._next_port[host] = first + count
        return tuple(range(first, first + count))
