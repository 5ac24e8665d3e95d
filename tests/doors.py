"""The end of a server that a test has played."""

import asyncio
from typing import Final

import anyio
from aiohttp.web_runner import BaseRunner
from anyio import wait_all_tasks_blocked
from anyio.lowlevel import checkpoint

from neorion.keel.base import Duration
from neorion.keel.clock import SystemClock

_PATIENCE_S: Final = 30.0
_AGAIN: Final = Duration.of(ms=1)


async def shut(runner: BaseRunner) -> None:
    """Leaves no connection to the garbage collector, whose warning would become the failure of another test."""
    # Its only way to the sockets.
    servers = [site._server for site in runner.sites if isinstance(site._server, asyncio.Server)]
    # Whoever is being let in comes in first: asyncio forgets those who find the server closed then.
    for server in servers:
        for door in server.sockets:
            asyncio.get_running_loop().remove_reader(door.fileno())
    await wait_all_tasks_blocked()
    await checkpoint()
    await runner.cleanup()
    # Whoever left while they shook hands was never let in, and nobody else waits until they are gone.
    with anyio.move_on_after(_PATIENCE_S):
        while any(_within(server) for server in servers):
            await SystemClock().sleep(_AGAIN)


def _within(server: asyncio.Server) -> int:
    """`wait_closed` would tell, but from Python 3.12 on."""
    return getattr(server, "_active_count", 0)
