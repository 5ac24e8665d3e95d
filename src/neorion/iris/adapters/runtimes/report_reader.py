"""The reports that one reader of `changes` has not read yet."""

import anyio

from neorion.iris.adapters.runtimes.process.protocol import AttemptReport


class ReportReader:
    """Keeps the latest report of each attempt, so that a slow reader never piles up reports."""

    def __init__(self, states: dict[str, AttemptReport]) -> None:
        self._states = states
        self._closed = False
        self._wake = anyio.Event()
        self._wake.set()

    def add(self, states: dict[str, AttemptReport]) -> None:
        self._states |= states
        self._wake.set()

    def close(self) -> None:
        self._closed = True
        self._wake.set()

    async def next(self) -> list[AttemptReport] | None:
        """The reports that came since the last call, as soon as there is one; None once closed."""
        await self._wake.wait()
        if self._closed:
            return None
        self._wake = anyio.Event()
        states, self._states = list(self._states.values()), {}
        return states
