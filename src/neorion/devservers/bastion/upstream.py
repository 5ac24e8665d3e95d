"""A connection of the bastion's own into a server's sshd, in the name of one user."""

import asyncio
from collections.abc import Callable, Sequence
from typing import Final, cast

import anyio
import asyncssh
from anyio.abc import ByteStream

from neorion.devservers.bastion.tunnel import Tunnel
from neorion.devservers.decide import SSH_PORT
from neorion.devservers.ports import RunningServer, ServerConnections
from neorion.keel.base import Conflict, Retry
from neorion.keel.kube import ObjectKey
from neorion.keel.run import create_owned_task, only_error

# The name by which sshd knows the user of every image.
_DEV: Final = "dev"
_CERTIFICATE_LIFE: Final = "5m"
_CONNECT_S: Final = 20
PIECE: Final = 64 * 1024


# The name by which `devctl ssh-config` knows the bastion.
_BASTION: Final = "devservers-bastion"
HostIdentity = tuple[asyncssh.SSHKey, asyncssh.SSHCertificate]


class Signer:
    """Signs short certificates in the names of users, and one for the bastion's own host key."""

    def __init__(self, authority: asyncssh.SSHKey) -> None:
        self._authority = authority
        # Never leaves this process, and is another one after each start.
        self._key = asyncssh.generate_private_key("ssh-ed25519")  # pyright: ignore[reportUnknownMemberType] -- its keywords are untyped

    def host_identity(self, key: asyncssh.SSHKey, names: Sequence[str] = ()) -> HostIdentity:
        """The host key with a certificate for these names, so that clients who trust the authority accept other keys too."""
        return key, self._authority.generate_host_certificate(key, "bastion", principals=[_BASTION, *names])

    def credentials(self, user: str, connection: str) -> tuple[asyncssh.SSHKey, asyncssh.SSHCertificate]:
        """Signs a certificate for the servers of one user. The server's own log shows the connection by its name here."""
        certificate = self._authority.generate_user_certificate(
            self._key,
            f"{user} by bastion {connection}",
            principals=[user],
            valid_after="-5m",
            valid_before=_CERTIFICATE_LIFE,
            permit_x11_forwarding=False,
            permit_agent_forwarding=False,
        )
        return self._key, certificate


class Upstream:
    """One for each login to a server: opened by the first channel that needs it, shared by all."""

    def __init__(
        self, servers: ServerConnections, signer: Signer, server: ObjectKey, user: str, name: str
    ) -> None:
        self._servers = servers
        self._signer = signer
        self._server = server
        self._user = user
        self._name = name
        self._lock = asyncio.Lock()
        self._connection: asyncssh.SSHClientConnection | None = None
        self._task: asyncio.Task[None] | None = None
        self.running: RunningServer | None = None

    async def connection(self, tell: Callable[[str], None]) -> asyncssh.SSHClientConnection | None:
        """The connection, opened again if it broke; None for a server without SSH, which is then `running`.

        `tell` gets the steps of a server that is woken.
        """
        async with self._lock:
            if self._connection is None or self._connection.is_closed():
                running = await self._servers.wake(self._server, tell)
                self.running = running
                if not running.host_key:
                    return None
                opened: asyncio.Future[asyncssh.SSHClientConnection] = (
                    asyncio.get_running_loop().create_future()
                )
                self._task = create_owned_task(self._run(running, opened), f"upstream {self._name}")
                self._connection = await opened
            return self._connection

    def close(self) -> None:
        if self._task is not None:
            self._task.cancel()

    async def _run(
        self, running: RunningServer, opened: asyncio.Future[asyncssh.SSHClientConnection]
    ) -> None:
        try:
            async with self._servers.connect(running, SSH_PORT) as stream:
                await self._log_in(running, stream, opened)
        except BaseException as error:
            if not opened.done():
                group = cast("BaseExceptionGroup[BaseException]", error)
                found = only_error(group) if isinstance(error, BaseExceptionGroup) else error
                opened.set_exception(_explained(running.name, found))
            if isinstance(error, asyncio.CancelledError):
                raise

    async def _log_in(
        self,
        running: RunningServer,
        stream: ByteStream,
        opened: asyncio.Future[asyncssh.SSHClientConnection],
    ) -> None:
        none: list[asyncssh.SSHKey] = []
        tunnel = Tunnel(stream, running.name)
        async with anyio.create_task_group() as group:
            group.start_soon(tunnel.carry)
            async with asyncssh.connect(
                running.name,
                tunnel=tunnel,
                username=_DEV,
                client_keys=[self._signer.credentials(self._user, self._name)],
                known_hosts=([asyncssh.import_public_key(running.host_key)], none, none),
                connect_timeout=_CONNECT_S,
                agent_path=None,
                config=None,
                encoding=None,
                compression_algs=["none"],
            ) as connection:
                opened.set_result(connection)
                await connection.wait_closed()
            group.cancel_scope.cancel()


def _explained(server: str, error: BaseException) -> BaseException:
    if isinstance(error, asyncssh.HostKeyNotVerifiable):
        return Conflict(
            "devservers.host_key",
            f"{server} does not prove itself with the host key that its status shows.",
            hint="Try again in a minute; if it stays so, tell an administrator.",
        )
    if isinstance(error, asyncssh.PermissionDenied):
        return Retry(
            "devservers.login_refused",
            f"The SSH server of {server} does not accept the bastion yet.",
            hint="Try again in two minutes: servers learn the bastion's authority after their start.",
        )
    if isinstance(error, asyncssh.Error | OSError | asyncio.CancelledError):
        return Retry("devservers.ssh_failed", f"The connection to {server} failed: {error}.")
    return error
