"""A wire between a client and the API server that can be cut, and can fall silent."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import anyio
from anyio.abc import ByteStream, SocketAttribute


class Wire:
    """Carries bytes until it is told otherwise."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._scopes: set[anyio.CancelScope] = set()
        self._open = asyncio.Event()
        self._open.set()
        self.address = ""

    def cut(self) -> None:
        """Every connection breaks; new ones are carried again."""
        for scope in self._scopes:
            scope.cancel()

    def silence(self) -> None:
        """Nothing passes any more, and nobody is told."""
        self._open.clear()

    def speak(self) -> None:
        self._open.set()

    async def serve(self, near: ByteStream) -> None:
        with anyio.CancelScope() as scope:
            self._scopes.add(scope)
            try:
                async with (
                    near,
                    await anyio.connect_tcp("127.0.0.1", self._port) as far,
                    anyio.create_task_group() as group,
                ):
                    group.start_soon(self._carry, near, far, group.cancel_scope)
                    await self._carry(far, near, group.cancel_scope)
            except* (anyio.BrokenResourceError, OSError):
                # One end went away; so does the other.
                pass
            finally:
                self._scopes.discard(scope)

    async def _carry(self, source: ByteStream, sink: ByteStream, end: anyio.CancelScope) -> None:
        async for piece in source:
            await self._open.wait()
            await sink.send(piece)
        end.cancel()


@asynccontextmanager
async def wire_to(port: int) -> AsyncGenerator[Wire]:
    wire = Wire(port)
    listener = await anyio.create_tcp_listener(local_host="127.0.0.1")
    wire.address = f"https://127.0.0.1:{listener.extra(SocketAttribute.local_port)}"  # noqa: S610 -- anyio's, no SQL
    async with listener, anyio.create_task_group() as group:
        group.start_soon(listener.serve, wire.serve)
        yield wire
        group.cancel_scope.cancel()
