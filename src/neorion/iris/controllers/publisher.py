"""Publishes durable transitions: orders to workers, signals to waiting callers, and the end of logs."""

from neorion.iris.controllers.context import ControllerContext
from neorion.iris.controllers.dispatcher import Dispatcher
from neorion.iris.controllers.lifecycle import LifecycleManager
from neorion.iris.controllers.log_store import LogStore


class TransitionPublisher:
    """Loop that publishes transitions. It is a separate task, so that a caller's cancellation cannot lose them."""

    def __init__(
        self,
        context: ControllerContext,
        lifecycle: LifecycleManager,
        dispatcher: Dispatcher,
        log_store: LogStore,
    ) -> None:
        self._context = context
        self._lifecycle = lifecycle
        self._dispatcher = dispatcher
        self._log_store = log_store

    async def run(self) -> None:
        while True:
            await self._lifecycle.moved.wait()
            moves = self._lifecycle.take()
            await self._context.journal.wait_durable()
            for attempt in moves.starts:
                self._dispatcher.start(attempt)
                self._context.first_attempt_started.notify(attempt.job)
            for attempt in moves.stops:
                self._dispatcher.stop(attempt)
            for attempt in moves.over:
                self._log_store.close(attempt.id)
            for worker in moves.lost:
                self._dispatcher.close_stream(worker)
            for job in moves.ended:
                self._context.job_ended.notify(job)
                self._context.first_attempt_started.notify(job)
