"""The listener: SSH with modern algorithms alone, and limits before anyone has logged in."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from functools import partial
from typing import Final

import anyio
import asyncssh

from neorion.devservers.bastion.connection import Connection
from neorion.devservers.bastion.context import Context
from neorion.devservers.bastion.upstream import HostIdentity
from neorion.keel.telemetry import logger

log = logger(__name__)

_POST_QUANTUM: Final = ("mlkem768x25519-sha256",)
# For OpenSSH before 9.9.
_KEY_EXCHANGES: Final = (*_POST_QUANTUM, "curve25519-sha256", "curve25519-sha256@libssh.org")
_CIPHERS: Final = (
    "aes128-gcm@openssh.com",
    "aes256-gcm@openssh.com",
    "chacha20-poly1305@openssh.com",
    "aes256-ctr",
)
_MACS: Final = ("hmac-sha2-256-etm@openssh.com", "hmac-sha2-512-etm@openssh.com")
_KEEPALIVE_S: Final = 30
_ENDS_S: Final = 5


@asynccontextmanager
async def listen(context: Context, identity: HostIdentity, host: str, port: int) -> AsyncGenerator[int]:
    """Serves while the block lasts, and then until open sessions have ended or their time is over. Gives the port."""
    acceptor = await asyncssh.listen(
        host,
        port,
        server_factory=partial(Connection, context),
        # As a plain key too.
        server_host_keys=[identity],
        server_version="Neorion",
        kex_algs=_POST_QUANTUM if context.limits.post_quantum else _KEY_EXCHANGES,
        encryption_algs=_CIPHERS,
        mac_algs=_MACS,
        compression_algs=["none"],
        password_auth=False,
        kbdint_auth=True,
        host_based_auth=False,
        gss_host=None,
        agent_forwarding=False,
        x11_forwarding=False,
        allow_scp=False,
        line_editor=False,
        encoding=None,
        # Connections hold their own, which is longer where an identity provider is asked.
        login_timeout=0,
        keepalive_interval=_KEEPALIVE_S,
        config=None,
    )
    try:
        yield acceptor.get_port()
    finally:
        # New logins go to another replica from here on.
        acceptor.close()
        await _drain(context)
        for session in context.sessions:
            session.cut("the bastion stops")
        await acceptor.wait_closed()
        if context.tasks:
            # They end what runs in Pods, and write the last records.
            await asyncio.wait(context.tasks, timeout=_ENDS_S)


async def _drain(context: Context) -> None:
    patience = context.limits.drain_s
    if not len(context.sessions) or patience <= 0:
        return
    log.info("bastion drains", sessions=len(context.sessions), seconds=patience)
    closed = asyncio.Event()
    context.sessions.listen(lambda: None if len(context.sessions) else closed.set())
    for session in context.sessions:
        session.notify(
            f"This bastion restarts. The session is closed in {patience:.0f} s; you can log in again now."
        )
    with anyio.move_on_after(patience):
        await closed.wait()
