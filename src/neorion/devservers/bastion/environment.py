"""Bounds the variables that a client sends for a session: asyncssh keeps all of them, and a client may send any number."""

from typing import Final

import asyncssh
from asyncssh.packet import SSHPacket

# ssh sends a handful: those of its `SendEnv`.
VARIABLES_MAX: Final = 64
BYTES_MAX: Final = 32 * 2**10


def limit_environment(channel: asyncssh.SSHServerChannel[bytes]) -> None:
    """Refuse further variables at the limits. The session goes on without them, as sshd does with `AcceptEnv`."""
    accept = channel._process_env_request  # noqa: SLF001  # pyright: ignore[reportPrivateUsage] -- there is no public hook
    requests = size = 0

    def process(packet: SSHPacket) -> bool:
        nonlocal requests, size
        requests += 1
        size += len(packet.get_remaining_payload())
        return requests <= VARIABLES_MAX and size <= BYTES_MAX and accept(packet)

    # asyncssh looks the method up by the name of the request.
    channel._process_env_request = process  # noqa: SLF001  # pyright: ignore[reportPrivateUsage] -- as above
