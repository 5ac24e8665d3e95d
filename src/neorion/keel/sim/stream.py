"""Byte streams between two hosts, with back-pressure, that break as TCP connections do."""

import asyncio
from collections import deque
from functools import partial
from typing import Final

import anyio
from anyio.abc import ByteStream

from neorion.keel.clock import Rng
from neorion.keel.sim.network_links import Link, Links

# The bytes that a sender may be ahead of its reader: a common size of socket buffers.
WINDOW: Final = 65_536
# The chance that a write arrives in two parts: high enough to reveal code that expects whole writes.
_SPLIT: Final = 0.25


class _Pipe:
    """One direction. Chunks arrive in the order sent, whatever delay each one draws.

    The writer learns of reads through messages in the other direction, so nothing passes a cut.
    """

    def __init__(self, links: Links, link: Link, rng: Rng) -> None:
        self._links = links
        self.link = link
        self._back = (link[1], link[0])
        self._rng = rng
        self._flight: deque[bytes | None] = deque()
        self._arrived = bytearray()
        self._ahead = 0
        self._ended = False
        self._changed = asyncio.Event()
        self._broken = False

    async def send(self, data: bytes) -> None:
        view = memoryview(data)
        while view:
            while self._ahead >= WINDOW and not self._broken:
                await self._changed.wait()
            if self._broken:
                raise anyio.BrokenResourceError
            room = min(len(view), WINDOW - self._ahead)
            if room > 1 and self._rng.random() < _SPLIT:
                room = self._rng.randrange(1, room)
            self._push(bytes(view[:room]))
            view = view[room:]

    def end(self) -> None:
        self._push(None)

    async def receive(self, max_bytes: int) -> bytes:
        while not self._arrived:
            if self._ended:
                raise anyio.EndOfStream
            if self._broken:
                raise anyio.BrokenResourceError
            await self._changed.wait()
        data = bytes(self._arrived[:max_bytes])
        del self._arrived[:max_bytes]
        self._links.carry(self._back, partial(self._make_room, len(data)))
        return data

    def stop_reading(self) -> None:
        self._links.carry(self._back, self.break_off)

    def break_off(self) -> None:
        self._broken = True
        self._notify()

    def _push(self, chunk: bytes | None) -> None:
        self._ahead += len(chunk or b"")
        self._flight.append(chunk)
        self._links.carry(self.link, self._arrive)

    def _arrive(self) -> None:
        chunk = self._flight.popleft()
        if chunk is None:
            self._ended = True
        else:
            self._arrived += chunk
        self._notify()

    def _make_room(self, size: int) -> None:
        self._ahead -= size
        self._notify()

    def _notify(self) -> None:
        self._changed.set()
        self._changed = asyncio.Event()


class Stream(ByteStream):
    """One end of a connection, as an anyio byte stream."""

    def __init__(self, inward: _Pipe, outward: _Pipe) -> None:
        self._inward = inward
        self._outward = outward
        self._closed = False
        self._ended = False

    @property
    def peer(self) -> str:
        """The name of the host at the other end."""
        return self._outward.link[1]

    async def send(self, item: bytes) -> None:
        if self._closed or self._ended:
            raise anyio.ClosedResourceError
        await self._outward.send(item)

    async def receive(self, max_bytes: int = WINDOW) -> bytes:
        if self._closed:
            raise anyio.ClosedResourceError
        return await self._inward.receive(max_bytes)

    async def send_eof(self) -> None:
        self._end()

    async def aclose(self) -> None:
        self.close()

    def close(self) -> None:
        self._end()
        self._closed = True
        self._inward.stop_reading()

    def _end(self) -> None:
        if not (self._closed or self._ended):
            self._ended = True
            self._outward.end()

    def reset(self) -> None:
        """Breaks this end, as its kernel does when the other end is gone."""
        self._inward.break_off()
        self._outward.break_off()


def stream_pair(links: Links, link: Link, rng: Rng) -> tuple[Stream, Stream]:
    """The two ends of one connection: the caller's, and the one at the other host."""
    there, back = _Pipe(links, link, rng), _Pipe(links, (link[1], link[0]), rng)
    return Stream(inward=back, outward=there), Stream(inward=there, outward=back)
