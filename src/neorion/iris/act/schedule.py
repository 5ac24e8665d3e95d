"""The scheduler's tick: view, plan, re-check, carry out."""

from collections.abc import Callable

from neorion.iris.act.deck import Deck
from neorion.iris.act.dispatch import Dispatch
from neorion.iris.act.lives import Lives
from neorion.iris.act.shelf import LogShelf
from neorion.iris.decide import Plan, schedule
from neorion.iris.model import JobId, Reason, StopCause, TaskState, WorkerId, WorkerState
from neorion.keel.telemetry import logger

log = logger(__name__)

# Where tasks that ask for ports find theirs; below the range from which kernels choose for themselves.
PORT_FIRST, PORT_LAST = 20_000, 29_999


class Scheduler:
    """Places what waits. `reasons` says of every job that still waits, why."""

    def __init__(self, deck: Deck, lives: Lives, dispatch: Dispatch, shelf: LogShelf) -> None:
        self._deck = deck
        self._book = deck.book
        self._lives = lives
        self._dispatch = dispatch
        self._shelf = shelf
        self._next_port: dict[str, int] = {}
        self.reasons: dict[JobId, Reason] = {}
        self.plan: Plan | None = None
        # Told after every pass; the autoscaler listens.
        self.after: Callable[[], None] = lambda: None

    async def tick(self) -> None:
        if self._book.waits():
            plan = schedule(self._book.view({}, 0), self._deck.clock.now())
            self.plan = plan
            self.reasons = dict(plan.reasons)
            self._carry_out(plan)
        else:
            self.plan, self.reasons = None, {}
        self.after()
        await self.tell()

    async def tell(self) -> None:
        """Carries what moved to those outside, once it is durable."""
        lives = self._lives
        starts, stops, over, ended = lives.starts, lives.stops, lives.over, lives.ended
        if not (starts or stops or over or ended):
            return
        lives.starts, lives.stops, lives.over, lives.ended = [], [], [], []
        await self._deck.journal.durable()
        for attempt in starts:
            self._dispatch.start(attempt)
        for attempt in stops:
            self._dispatch.stop(attempt)
        for attempt in over:
            self._shelf.close(attempt.id)
        for job in ended:
            self._deck.bells.ring(job)

    def _carry_out(self, plan: Plan) -> None:
        for preemption in plan.preemptions:
            attempt = self._book.attempts.get(preemption.attempt)
            if attempt is not None:
                self._lives.stop(attempt, StopCause.PREEMPTED)
        for job, index, worker in plan.assignments:
            # The plan is of a moment ago; what it rests on is looked at once more.
            task = self._book.tasks[job][index]
            host = self._book.workers.get(worker)
            if task.state is TaskState.PENDING and host is not None and host.state is WorkerState.READY:
                self._lives.begin(job, index, worker, self._ports(job, worker))

    def _ports(self, job: JobId, worker: WorkerId) -> tuple[int, ...]:
        spec = self._book.jobs[job].spec
        # A gang's first task needs one to meet at; which task is first is not known here, so each has one.
        count = len(spec.ports) or bool(spec.placement.gang)
        host = self._book.workers[worker].host
        first = self._next_port.get(host, PORT_FIRST)
        if first + count > PORT_LAST:
            first = PORT_FIRST
        self._next_port[host] = first + count
        return tuple(range(first, first + count))
