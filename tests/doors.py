"""The end of a server that a test has played."""

from aiohttp.web_runner import BaseRunner
from anyio import wait_all_tasks_blocked
from anyio.lowlevel import checkpoint


async def shut(runner: BaseRunner) -> None:
    """Leaves no connection to the garbage collector, whose warning would become the failure of another test."""
    server = runner.server
    await runner.cleanup()
    # A client that did not give up may have been let in while the door closed.
    await wait_all_tasks_blocked()
    await checkpoint()
    if server is not None:
        await server.shutdown()
