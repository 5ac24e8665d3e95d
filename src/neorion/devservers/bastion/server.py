"""The listener: SSH with modern algorithms alone, and limits before anyone has logged in."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from functools import partial
from typing import Final

import asyncssh

from neorion.devservers.bastion.connection import Connection
from neorion.devservers.bastion.context import Context

_KEY_EXCHANGES: Final = ("curve25519-sha256", "curve25519-sha256@libssh.org", "ecdh-sha2-nistp256")
_CIPHERS: Final = (
    "aes128-gcm@openssh.com",
    "aes256-gcm@openssh.com",
    "chacha20-poly1305@openssh.com",
    "aes256-ctr",
)
_MACS: Final = ("hmac-sha2-256-etm@openssh.com", "hmac-sha2-512-etm@openssh.com")
_KEEPALIVE_S: Final = 30


@asynccontextmanager
async def listen(context: Context, host_key: asyncssh.SSHKey, host: str, port: int) -> AsyncGenerator[int]:
    """Serves while the block lasts. Gives the port."""
    acceptor = await asyncssh.listen(
        host,
        port,
        server_factory=partial(Connection, context),
        server_host_keys=[host_key],
        server_version="Neorion",
        kex_algs=_KEY_EXCHANGES,
        encryption_algs=_CIPHERS,
        mac_algs=_MACS,
        compression_algs=["none"],
        password_auth=False,
        kbdint_auth=False,
        host_based_auth=False,
        gss_host=None,
        agent_forwarding=False,
        x11_forwarding=False,
        allow_scp=False,
        line_editor=False,
        encoding=None,
        login_timeout=context.limits.grace_s,
        keepalive_interval=_KEEPALIVE_S,
        config=None,
    )
    try:
        yield acceptor.get_port()
    finally:
        acceptor.close()
        for session in context.sessions:
            session.cut("the bastion stops")
        await acceptor.wait_closed()
