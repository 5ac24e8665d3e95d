"""A stretch of wire between a client and the API server, which a test may cut, or let go silent."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from urllib.parse import urlsplit

import anyio
from anyio.abc import ByteStream, SocketAttribute
from msgspec.structs import replace

from neorion.keel.kube.client import ClusterConfig


class Wire:
    """Carries bytes both ways. What is silent stays open and says nothing more; new connections are fine."""

    def __init__(self, host: str, port: int) -> None:
        self._target = (host, port)
        self._lives: list[anyio.CancelScope] = []
        self._silenced: set[anyio.CancelScope] = set()
        self.shut = False

    def cut(self) -> None:
        for life in self._lives:
            life.cancel()

    def silence(self) -> None:
        self._silenced.update(self._lives)

    async def carry(self, near: ByteStream) -> None:
        async with near:
            if self.shut:
                return
            with anyio.CancelScope() as life:
                self._lives.append(life)
                try:
                    async with (
                        await anyio.connect_tcp(*self._target) as far,
                        anyio.create_task_group() as group,
                    ):
                        group.start_soon(self._pump, near, far, life)
                        await self._pump(far, near, life)
                        group.cancel_scope.cancel()
                except (OSError, anyio.BrokenResourceError):
                    return
                finally:
                    self._lives.remove(life)

    async def _pump(self, source: ByteStream, sink: ByteStream, life: anyio.CancelScope) -> None:
        try:
            async for piece in source:
                if life in self._silenced:
                    await anyio.sleep_forever()
                await sink.send(piece)
        except (anyio.BrokenResourceError, anyio.ClosedResourceError):
            return
        life.cancel()


@asynccontextmanager
async def wired(cluster: ClusterConfig) -> AsyncGenerator[tuple[Wire, ClusterConfig]]:
    """The wire, and the cluster as seen through it."""
    server = urlsplit(cluster.server)
    assert server.hostname
    assert server.port
    wire = Wire(server.hostname, server.port)
    async with (
        await anyio.create_tcp_listener(local_host="127.0.0.1") as listener,
        anyio.create_task_group() as group,
    ):
        group.start_soon(listener.serve, wire.carry)
        port = listener.extra(SocketAttribute.local_port)  # noqa: S610 -- a listener of anyio, not a database
        yield wire, replace(cluster, server=f"https://127.0.0.1:{port}")
        group.cancel_scope.cancel()
