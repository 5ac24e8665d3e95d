"""The worker's end of one runner's connection."""

import anyio

from neorion.iris.adapters.runtimes.container.messages import (
    Sender,
    StopOrder,
    ToRunner,
    UsageReport,
    UsageRequest,
)
from neorion.keel.base import Duration

_USAGE_S_MAX = 2


class RunnerLink:
    """Sends to a runner. The reader of the connection sees where it breaks."""

    def __init__(self, sender: Sender) -> None:
        self._sender = sender
        self._usage: UsageReport | None = None
        self._answered = anyio.Event()

    async def send(self, *messages: ToRunner) -> None:
        await self._sender.send(*messages)

    async def stop(self, grace: Duration) -> None:
        await self._send_quietly(StopOrder(grace.ns))

    async def usage(self) -> UsageReport | None:
        """Returns the present use of its attempt; None where the runner does not answer."""
        self._usage, self._answered = None, anyio.Event()
        await self._send_quietly(UsageRequest())
        with anyio.move_on_after(_USAGE_S_MAX):
            await self._answered.wait()
        return self._usage

    def take_usage(self, report: UsageReport) -> None:
        self._usage = report
        self._answered.set()

    async def close(self) -> None:
        await self._sender.close()

    async def _send_quietly(self, message: ToRunner) -> None:
        try:
            await self._sender.send(message)
        except (OSError, anyio.BrokenResourceError, anyio.ClosedResourceError):
            return
