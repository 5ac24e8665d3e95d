"""The changes of containers, found by asking an engine again and again."""

from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from dataclasses import replace
from typing import Final

import anyio

from neorion.iris.adapters.runtimes.container.engine import ContainerState, ContainerStatus
from neorion.iris.model import AttemptId
from neorion.keel.base import Duration, Error
from neorion.keel.clock import Clock
from neorion.keel.telemetry import logger

log = logger(__name__)

# Runners report ends themselves. A poll finds only those that a runner could not report.
EVERY: Final = Duration.of(seconds=1)


class ContainerPoll:
    """Polls while there are containers, and rests while there are none."""

    def __init__(self, find: Callable[[], Awaitable[Sequence[ContainerStatus]]], clock: Clock) -> None:
        self._find = find
        self._clock = clock
        self._expected = anyio.Event()
        self._started = dict[AttemptId, ContainerStatus]()

    def expect(self, attempt: AttemptId) -> None:
        """Polls again: the attempt's container was started. It is GONE even if no poll ever finds it."""
        self._started[attempt] = ContainerStatus(attempt, ContainerState.WAITING)
        self._expected.set()

    async def changes(self) -> AsyncGenerator[Sequence[ContainerStatus], None]:
        """Yields first every container, then those that changed. A container that is no longer found is GONE."""
        known = _by_attempt(await self._find())
        yield list(known.values())
        while True:
            if not known:
                await self._expected.wait()
            self._expected = anyio.Event()
            await self._clock.sleep(EVERY)
            known = {**self._started, **known}
            self._started.clear()
            try:
                found = _by_attempt(await self._find())
            except Error as error:
                log.warning("the engine does not tell its containers", why=error.sentence)
                self._expected.set()
                continue
            changed = [one for one in found.values() if known.get(one.attempt) != one]
            changed += [
                replace(known[gone], state=ContainerState.GONE) for gone in known.keys() - found.keys()
            ]
            known = found
            if changed:
                yield changed


def _by_attempt(statuses: Sequence[ContainerStatus]) -> dict[AttemptId, ContainerStatus]:
    return {status.attempt: status for status in statuses}
