"""Inside a server: its commands, what it says, and its ports."""

from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, aclosing, asynccontextmanager
from functools import partial

import anyio
from anyio.abc import TaskStatus

from neorion.devservers.client.api import AGAIN, DevServerApi
from neorion.devservers.client.progress import obstacle
from neorion.devservers.client.server_diagnosis import diagnose_stopped
from neorion.keel.base import Conflict, Invalid, NotFound, Retry
from neorion.keel.kube import PodLogOptions
from neorion.keel.kube.client import Client
from neorion.keel.kube.core import Pod
from neorion.keel.kube.streams import (
    ContainerRef,
    ExecResult,
    ExecSession,
    PodPort,
    execute,
    forward,
    log_broken,
    run,
)

# The container of a server's pod that is the server; others may stand beside it.
CONTAINER = "dev"

_Lead = Callable[[PodPort, str, int], AbstractAsyncContextManager[int]]


async def container(fleet: DevServerApi, name: str) -> ContainerRef:
    """Where its commands run. Refused while it is down: who asks the node anyway hears of a container that is not found."""
    pod = await _running(fleet, name)
    return ContainerRef(pod.meta.name, fleet.namespace, CONTAINER)


async def _running(fleet: DevServerApi, name: str) -> Pod:
    pod = await fleet.pod(name)
    for status in pod.status.containers:
        found = diagnose_stopped(name, status) if status.name == CONTAINER else None
        if found is not None:
            # The operator knows more of it, as soon as it has heard.
            told = obstacle(await fleet.server(name))
            raise Conflict("devservers.not_running", told or found.sentence, hint=found.hint)
    return pod


async def exec_run(fleet: DevServerApi, name: str, command: Sequence[str], stdin: bytes = b"") -> ExecResult:
    """Runs a command to its end. A text is for the shell, a list a program and its arguments."""
    if not command:
        raise Invalid("devservers.command", "There is no command to run.", hint='Give one, such as "ls -l".')
    argv = ["/bin/sh", "-c", command] if isinstance(command, str) else command
    return await run(fleet.client, await container(fleet, name), argv, stdin)


def exec_stream(
    client: Client, where: ContainerRef, command: Sequence[str], *, tty: bool = False
) -> AbstractAsyncContextManager[ExecSession]:
    """A command under way, with its input open."""
    return execute(client, where, command, stdin=True, tty=tty)


async def pod_logs(fleet: DevServerApi, name: str, request: PodLogOptions) -> AsyncGenerator[bytes]:
    # Also of a pod that is down, because its log may contain the reason.
    pod = await fleet.pod(name)
    asked = PodLogOptions(
        CONTAINER, request.follow, request.previous, request.tail_lines, request.since, request.timestamps
    )
    main = next((one for one in pod.status.containers if one.name == CONTAINER), None)
    if request.previous and (main is None or main.last_state.terminated is None):
        raise NotFound(
            "devservers.no_previous",
            f"{name} has not been restarted: there is nothing from before.",
            hint=f"Read what it writes now: devctl logs {name}.",
        )
    async with fleet.client.logs(pod.meta.name, fleet.namespace, asked) as pieces:
        async for piece in pieces:
            yield piece


@asynccontextmanager
async def port_forward(
    fleet: DevServerApi,
    name: str,
    port: int,
    here: tuple[str, int] = ("127.0.0.1", 0),
    tell: Callable[[PodPort, str], None] = log_broken,
) -> AsyncGenerator[int]:
    """Forwards a local port to the server's port while the block lasts. Yields the local port.

    When the server moves to another machine, the same local port leads there. `tell` is called when a connection breaks.
    """
    pod = await _running(fleet, name)
    target = PodPort(pod.meta.name, fleet.namespace, port)
    async with anyio.create_task_group() as group:
        lead = partial(forward, fleet.client, tell=tell)
        yield await group.start(_keep_forwarding, fleet, name, target, here, lead)
        group.cancel_scope.cancel()


async def _keep_forwarding(
    fleet: DevServerApi,
    name: str,
    target: PodPort,
    here: tuple[str, int],
    lead: _Lead,
    *,
    task_status: TaskStatus[int],
) -> None:
    host, local = here
    told = False
    while True:
        async with lead(target, host, local) as local:
            if not told:
                task_status.started(local)
                told = True
            target = await _next_target(fleet, name, target)


async def _next_target(fleet: DevServerApi, name: str, target: PodPort) -> PodPort:
    """Returns when the server has another machine."""
    async with aclosing(fleet.versions(name)) as versions:
        async for server in versions:
            if server is None or not server.status.ready or target.pod in server.status.pod_names:
                continue
            try:
                pod = await fleet.pod(name)
            except (Conflict, Retry):
                await fleet.clock.sleep(AGAIN)
                continue
            if pod.meta.name != target.pod:
                return PodPort(pod.meta.name, target.namespace, target.port)
    return target
