"""The end of a server that a test has played."""

import asyncio

from aiohttp.web_runner import BaseRunner
from anyio import wait_all_tasks_blocked
from anyio.lowlevel import checkpoint


async def shut(runner: BaseRunner) -> None:
    """Leaves no connection to the garbage collector, whose warning would become the failure of another test."""
    # Whoever is being let in comes in first: asyncio forgets those who find the server closed then.
    for site in runner.sites:
        server = site._server  # its only way to the sockets
        for door in server.sockets if isinstance(server, asyncio.Server) else ():
            asyncio.get_running_loop().remove_reader(door.fileno())
    await wait_all_tasks_blocked()
    await checkpoint()
    await runner.cleanup()
