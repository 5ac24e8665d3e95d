"""Carries what moved to those outside, once it is durable: orders to workers, bells to those who wait, ends to logs."""

from neorion.iris.controllers.context import ControllerContext
from neorion.iris.controllers.dispatcher import Dispatcher
from neorion.iris.controllers.lifecycle import LifecycleManager
from neorion.iris.controllers.log_store import LogStore


class TransitionPublisher:
    """A task of its own: a caller that goes away while the disk is slow must not take its news with it."""

    def __init__(
        self, deck: ControllerContext, lives: LifecycleManager, dispatch: Dispatcher, shelf: LogStore
    ) -> None:
        self._deck = deck
        self._lives = lives
        self._dispatch = dispatch
        self._shelf = shelf

    async def run(self) -> None:
        while True:
            await self._lives.moved.wait()
            moves = self._lives.take()
            await self._deck.journal.wait_durable()
            for attempt in moves.starts:
                self._dispatch.start(attempt)
                self._deck.first_attempt_started.ring(attempt.job)
            for attempt in moves.stops:
                self._dispatch.stop(attempt)
            for attempt in moves.over:
                self._shelf.close(attempt.id)
            for worker in moves.lost:
                self._dispatch.close_stream(worker)
            for job in moves.ended:
                self._deck.job_ended.ring(job)
                self._deck.first_attempt_started.ring(job)
