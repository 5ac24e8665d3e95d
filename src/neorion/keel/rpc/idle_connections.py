"""Closes idle connections without a token before they exhaust the limit for connections.

The HTTP server accepts connections up to a limit and then waits. It does not report idle connections, so they are
found among the open files of this process, with the time since their last byte from the kernel (tcp(7), TCP_INFO).
"""

import os
import socket
import struct
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from anyio import to_thread

from neorion.keel.base import Duration
from neorion.keel.clock import Clock
from neorion.keel.telemetry import logger

log = logger(__name__)

# Address and port of a connection's other side.
Peer = tuple[str, int]

_FILES: Final = Path("/proc/self/fd")
# `tcpi_last_data_recv`, in milliseconds.
_LAST_RECEIVED: Final = struct.Struct("=52xI")
_INFO_BYTES: Final = _LAST_RECEIVED.size
# Of the connections that are allowed, so many stay when strangers are sent away.
_KEPT: Final = 0.75
_LOOK_EVERY: Final = Duration.of(ms=500)


class KnownPeers:
    """Connections on which a valid token was shown."""

    def __init__(self) -> None:
        self._peers: set[Peer] = set()

    def __contains__(self, peer: object) -> bool:
        return peer in self._peers

    def __len__(self) -> int:
        return len(self._peers)

    def add(self, host: str, port: int) -> None:
        self._peers.add(normal(host, port))

    def keep_only(self, peers: Iterable[Peer]) -> None:
        """Forgets connections that have ended."""
        self._peers.intersection_update(peers)


@dataclass(frozen=True, slots=True)
class _Connection:
    """One connection to our port. `file` is a duplicate of the server's own."""

    file: socket.socket
    peer: Peer
    idle_ms: int


def normal(host: str, port: int) -> Peer:
    return host.removeprefix("::ffff:"), port


async def keep_room(port: int, most: int, known: KnownPeers, clock: Clock) -> None:
    """Runs until cancelled. Never has more than three quarters of `most` connections where strangers are among them."""
    if not _FILES.exists():
        return
    while True:
        await clock.sleep(_LOOK_EVERY)
        if len(os.listdir(_FILES)) > most * _KEPT or len(known) > 2 * most:  # noqa: PTH208 -- names alone
            closed = await to_thread.run_sync(make_room, port, int(most * _KEPT), known)
            if closed:
                log.warning("closed idle connections of strangers", number=closed)


def make_room(port: int, most: int, known: KnownPeers) -> int:
    """Closes the strangers that were idle for longest, until `most` connections are left; how many those were."""
    found = list(_connections(port))
    try:
        # A duplicate of ours may have the number of a file that was listed and closed meanwhile.
        peers = {one.peer: one for one in found}
        known.keep_only(peers)
        strangers = sorted(
            (one for one in peers.values() if one.peer not in known), key=lambda one: -one.idle_ms
        )
        chosen = strangers[: max(0, len(peers) - most)]
        for one in chosen:
            # It may have ended meanwhile.
            with suppress(OSError):
                one.file.shutdown(socket.SHUT_RDWR)
        return len(chosen)
    finally:
        for one in found:
            one.file.close()


def close_all(port: int) -> None:
    """Closes the connections that are left when a server stops."""
    if _FILES.exists():
        make_room(port, 0, KnownPeers())


def _connections(port: int) -> Iterator[_Connection]:
    for name in os.listdir(_FILES):  # noqa: PTH208 -- as above
        try:
            if not os.readlink(_FILES / name).startswith("socket:"):  # noqa: PTH115 -- thousands of them
                continue
            file = socket.socket(fileno=os.dup(int(name)))
        except OSError:
            continue
        found = _described(file, port)
        if found is None:
            file.close()
        else:
            yield found


def _described(file: socket.socket, port: int) -> _Connection | None:
    try:
        own, other = file.getsockname(), file.getpeername()
        info = file.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, _INFO_BYTES)
    except OSError:
        # It listens, or is not a TCP connection.
        return None
    if own[1] != port or len(info) < _INFO_BYTES:
        return None
    return _Connection(file, normal(other[0], other[1]), _LAST_RECEIVED.unpack(info)[0])
