"""Runs an application on a port, and stops it without losing a call."""

import errno
import ipaddress
import socket
import ssl
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from typing import Final

import anyio
from anyio import to_thread
from anyio.abc import TaskStatus

from neorion.keel.base import Conflict, Duration, Invalid, Terminal
from neorion.keel.clock import SystemClock
from neorion.keel.rpc.app import AsgiApp
from neorion.keel.rpc.descriptors import connections_allowed
from neorion.keel.rpc.idle_connections import close_all, keep_room
from neorion.keel.rpc.tls import ServerTls

# Connections the kernel queues while the loop is busy; it reduces this to its own maximum.
_PORT_MAX: Final = 65535
_BACKLOG: Final = 4096
# After the last call has ended, so long may its answer be on its way. What holds a connection longer is half a request.
_FLUSH_S: Final = 3.0
# Without connections granian ends at once.
_STOP_S: Final = 5.0
_GRACE: Final = Duration.of(seconds=20)


@dataclass(frozen=True, slots=True)
class Server:
    """A server that accepts connections."""

    host: str
    port: int
    secure: bool

    @property
    def address(self) -> str:
        """The URL for clients."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{'https' if self.secure else 'http'}://{host}:{self.port}"


@asynccontextmanager
async def serve(
    app: AsgiApp,
    host: str = "127.0.0.1",
    port: int = 0,
    *,
    tls: ServerTls | None = None,
    grace: Duration = _GRACE,
    open_to_network: bool = False,
) -> AsyncGenerator[Server]:
    """Serves `app` while the block runs; port 0 lets the kernel choose one.

    Leaving the block refuses new connections, ends streams with a request to reconnect, waits for calls up to `grace`,
    cancels what is left, and closes what is still open. An app that accepts callers without a token serves only this
    machine, unless `open_to_network` is set.
    """
    from neorion.keel.rpc.listener import Listener  # noqa: PLC0415 -- only servers load granian

    _check_files(tls)
    with await _bind(host, port) as bound:
        address, chosen = bound.getsockname()[:2]
        if not app.requires_token and not ipaddress.ip_address(address).is_loopback and not open_to_network:
            raise Invalid(
                "rpc.open_to_network",
                f"The server would accept callers without a token on {address}.",
                hint="Require tokens, or bind it to 127.0.0.1.",
            )
        connections = connections_allowed(app.limits.connections)
        listener = Listener(app, bound, replace(app.limits, connections=connections), tls)
        failure: Exception | None = None
        stopped = anyio.Event()
        # Shielded: even if the block fails, calls are finished, and the task ends when the server has stopped.
        running = anyio.CancelScope(shield=True)

        async def run(*, task_status: TaskStatus[None]) -> None:
            with running:
                task_status.started()
                await listener.serve()
                stopped.set()
                if not app.draining:
                    raise Terminal("rpc.stopped", "The HTTP server stopped by itself.")

        async with anyio.create_task_group() as tasks:
            await tasks.start(run)
            if app.authenticator is not None:
                tasks.start_soon(keep_room, chosen, connections, app.known_peers, SystemClock())
            try:
                yield Server(address, chosen, tls is not None)
            except Exception as error:  # noqa: BLE001 -- raised below, outside of the task group's wrapping
                failure = error
            finally:
                with anyio.CancelScope(shield=True):
                    listener.stop()
                    await app.drain(grace)
                    await _wait_stopped(stopped, chosen)
                running.cancel()
                tasks.cancel_scope.cancel()
        if failure is not None:
            raise failure


async def _wait_stopped(stopped: anyio.Event, port: int) -> None:
    """Waits for the last answers, and closes the connections that are left."""
    with anyio.move_on_after(_FLUSH_S):
        await stopped.wait()
    await to_thread.run_sync(close_all, port)
    with anyio.move_on_after(_STOP_S):
        await stopped.wait()


async def _bind(host: str, port: int) -> socket.socket:
    if not 0 <= port <= _PORT_MAX:
        # The system would use the number modulo 65536.
        raise Invalid(
            "rpc.bad_port",
            f"{port} is not a valid port.",
            hint=f"Choose one up to {_PORT_MAX}; 0 takes a free one.",
        )
    try:
        found = await anyio.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    except OSError:
        raise Invalid(
            "rpc.bad_host", f'The host "{host}" cannot be resolved.', hint="Use an address of this machine."
        ) from None
    family, kind, _, _, place = found[0]
    bound = socket.socket(family, kind)
    try:
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        bound.setblocking(False)
        bound.bind(place)
        bound.listen(_BACKLOG)
    except OSError as error:
        bound.close()
        if error.errno == errno.EADDRINUSE:
            raise Conflict(
                "rpc.port_taken",
                f"Port {port} of {host} is in use.",
                hint="Stop what uses it, or choose another; 0 takes a free one.",
            ) from None
        raise Invalid(
            "rpc.bad_host",
            f"Cannot listen on {host}:{port}: {error.strerror}.",
            hint="Use an address of this machine.",
        ) from None
    return bound


def _check_files(tls: ServerTls | None) -> None:
    """Checks the TLS files, because granian aborts the whole process over an authority that it cannot read."""
    if tls is None:
        return
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    try:
        context.load_cert_chain(tls.cert, tls.key)
        if tls.client_ca is not None:
            context.load_verify_locations(tls.client_ca)
    except ssl.SSLError:
        raise Invalid(
            "rpc.bad_certificate",
            "The files for TLS hold no certificate and key that fit.",
            hint="Check the PEM files.",
        ) from None
    except OSError as error:
        raise Invalid(
            "rpc.no_such_file",
            f"Cannot read a file for TLS: {error.strerror}.",
            hint=f"Check {tls.cert}, {tls.key} and {tls.client_ca or 'no authority'}.",
        ) from None
