"""Reaches the servers of users on a cluster: woken by a patch, connected to by the Pod's address or by the API server."""

from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from typing import Final

import anyio
from anyio.abc import ByteStream

from neorion.devservers.client import DevServerApi, Progress, wait_ready
from neorion.devservers.decide import SSH_PORT
from neorion.devservers.ports import RunningServer
from neorion.keel.base import Deadline, Duration, NotFound, Retry
from neorion.keel.clock import Clock
from neorion.keel.kube import ObjectKey
from neorion.keel.kube.client import Client
from neorion.keel.kube.streams import PodPort, open_port

WAKE_PATIENCE: Final = Duration.of(minutes=5)
_DONE: Final = {
    "volume": "The volume is ready.",
    "quota": "The quota is granted.",
    "scheduled": "A node is found.",
    "image": "The image is pulled.",
    "ready": "It is ready.",
}
_CONNECT_S: Final = 10.0


class ClusterServers:
    """`direct` connects to sshd by the Pod's address; every other port goes through the API server, as network policies demand."""

    def __init__(self, client: Client, clock: Clock, *, direct: bool = False) -> None:
        self._client = client
        self._clock = clock
        self._direct = direct

    async def wake(self, server: ObjectKey, tell: Callable[[str], None]) -> RunningServer:
        fleet = DevServerApi(self._client, server.namespace, self._clock)
        found = await fleet.server(server.name)
        if found.meta.deleted is not None:
            raise NotFound("devservers.deleted", f"{server.name} is being deleted.")
        if not found.spec.running:
            tell(f"{server.name} is stopped. Starting it.")
            await fleet.start(server.name)
        if not found.spec.running or not found.status.ready:
            found = await wait_ready(fleet, server.name, _Steps(tell).show, WAKE_PATIENCE)
        pod = await fleet.pod(server.name)
        host_key = found.status.ssh_host_key or ""
        return RunningServer(server.name, server.namespace, pod.meta.name, pod.status.pod_ip, host_key)

    @asynccontextmanager
    async def connect(self, server: RunningServer, port: int) -> AsyncGenerator[ByteStream]:
        if self._direct and server.address and port == SSH_PORT:
            async with await self._dial(server, port) as stream:
                yield stream
            return
        async with open_port(self._client, PodPort(server.pod, server.namespace, port)) as stream:
            yield stream

    async def _dial(self, server: RunningServer, port: int) -> ByteStream:
        try:
            with anyio.fail_after(_CONNECT_S):
                return await anyio.connect_tcp(server.address, port)
        except TimeoutError:
            raise Deadline(
                "devservers.no_answer", f"{server.name} did not answer within {_CONNECT_S:.0f} s."
            ) from None
        except OSError as error:
            raise Retry("devservers.no_connection", f"{server.name} cannot be reached: {error}.") from None


class _Steps:
    """Tells each finished step of a start once."""

    def __init__(self, tell: Callable[[str], None]) -> None:
        self._tell = tell
        self._told: set[str] = set()

    def show(self, progress: Progress) -> None:
        lines = [_DONE[step.name] for step in progress.steps if step.done]
        for line in filter(None, (*lines, progress.obstacle)):
            if line not in self._told:
                self._told.add(line)
                self._tell(line)
