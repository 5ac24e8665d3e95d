"""One SSH connection to the bastion: its user, and the channels that it may open."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import AnyStr, Literal, cast

import asyncssh
from asyncssh.auth import KbdIntChallenge
from asyncssh.constants import (
    DISC_BY_APPLICATION,
    DISC_TOO_MANY_CONNECTIONS,
    OPEN_ADMINISTRATIVELY_PROHIBITED,
    OPEN_CONNECT_FAILED,
    OPEN_RESOURCE_SHORTAGE,
)
from asyncssh.stream import SSHTCPStreamSession

from neorion.devservers.adapters.identity import certificate_line
from neorion.devservers.bastion.context import Context, Who
from neorion.devservers.bastion.device_login import DeviceAuthentication
from neorion.devservers.bastion.first_logins import is_settled
from neorion.devservers.bastion.forward import Forward
from neorion.devservers.bastion.session import Session
from neorion.devservers.bastion.sessions import OpenConnection
from neorion.devservers.bastion.upstream import Upstream
from neorion.devservers.decide import SSH_PORT
from neorion.devservers.decide.login import Login, parse_login, server_meant
from neorion.devservers.model.audit import AuditEvent
from neorion.devservers.model.login import DevServerUserRequestSpec
from neorion.devservers.model.tenancy import own_namespace
from neorion.devservers.model.user import UserLimits
from neorion.keel.base import Denied, Error
from neorion.keel.kube import ObjectKey
from neorion.keel.telemetry import logger

log = logger(__name__)

# Where sshd listens, whatever runs it.
_SSH = 22
# In place of a fingerprint in records of logins by certificate.
_CERTIFICATE = "certificate"
_IDENTITY_PROVIDER = "identity provider"


_NO_AGENT = "Agent forwarding is refused. Reach servers by ssh -J, which needs no agent."
_NO_X11 = "X11 forwarding is refused."
_NO_REMOTE_FORWARD = "Forwarding to your machine (-R) is refused. Forward ports of servers by -L."


class Connection(asyncssh.SSHServer):
    """Everything that is not allowed here is refused by asyncssh's own defaults: passwords, agents, X11, tunnels.

    Clients show nothing of most refusals, so the next session says what was refused.
    """

    def __init__(self, context: Context) -> None:
        self.context = context
        self.login = Login("")
        self.who = Who("")
        self.upstream: Upstream | None = None
        self._connection: asyncssh.SSHServerConnection | None = None
        self._waiting = False
        self._refused = False
        self._key = b""
        self._open: OpenConnection | None = None
        self._reason = ""
        self._channels = 0
        self._refusals: list[str] = []
        self.sessions: set[Session] = set()
        # The certificate that logged in, for a user who is not there yet.
        self._certificate = b""
        self._device: DeviceAuthentication | None = None
        self._grace: asyncio.TimerHandle | None = None
        self._provisioning = asyncio.Lock()
        self._denied: Denied | None = None

    def connection_made(self, conn: asyncssh.SSHServerConnection) -> None:
        self._connection = conn
        # asyncssh has no hook that is given the certificate.
        self._check_key = conn.validate_public_key
        conn.validate_public_key = self._validate_key
        # Nor for these two. It calls its connection, which would refuse without a word.
        conn.create_agent_listener = self._refuse_agent
        conn.attach_x11_listener = self._refuse_x11
        source = str((conn.get_extra_info("peername") or ("",))[0])
        self.who = Who(self.context.new_id(), source=source)
        refused = self.context.sources.connect(source)
        if refused:
            log.info("connection refused", source=source, why=refused)
            conn.abort()
            return
        self._waiting = True
        self._allow(self.context.limits.grace_s)

    def begin_auth(self, username: str) -> bool:
        self.login = parse_login(username) or Login("")
        self._set_who()
        user, context = self.login.user, self.context
        keys = context.authorities.authorized_keys(user) if user else None
        known = context.directory.user(user) is not None
        if keys is not None and self._connection is not None and (known or self._may_be_first):
            self._connection.set_authorized_keys(keys)
        # Always: whether there is such a user, only one who proves to be them learns.
        return True

    def public_key_auth_supported(self) -> bool:
        return True

    def validate_public_key(self, username: str, key: asyncssh.SSHKey) -> bool:
        del username
        admitted = bool(self.login.user) and self.context.directory.admits(self.login.user, key.public_data)
        if admitted:
            self._key = key.public_data
            self._set_who(key.get_fingerprint())
        else:
            self._refused = True
        return admitted

    def kbdint_auth_supported(self) -> bool:
        """True where an identity provider is asked: for every name, so that it does not tell which users there are."""
        return bool(self.login.user) and self.context.directory.policy.identity_provider is not None

    async def get_kbdint_challenge(self, username: str, lang: str, submethods: str) -> KbdIntChallenge:
        del username, lang, submethods
        if self._device is not None:
            return False
        self._device = DeviceAuthentication(self.context, self.who.connection)
        challenge = await self._device.begin()
        self._allow(self._device.patience_s + self.context.limits.grace_s)
        return challenge

    async def validate_kbdint_response(self, username: str, responses: Sequence[str]) -> KbdIntChallenge:
        del username, responses
        if self._device is None:
            return False
        answer = await self._device.finish(self.login.user)
        if self._device.token and self._limits is None:
            answer = self._device.refuse(f"{self.login.user} may not log in here.")
        self._refused = not self._device.token
        return answer

    def auth_completed(self) -> None:
        context, conn = self.context, self._connection
        self._allow(None)
        limits = self._limits
        if conn is None:
            return
        if limits is None:
            # Suspended since the key was checked.
            self._refuse("the user is suspended or removed")
            conn.disconnect(DISC_BY_APPLICATION, "You may not log in here.")
            return
        self._settle(logged_in=True)
        if not self._key:
            # asyncssh has checked a certificate: its authority, its principals, its time and its addresses.
            self._set_who(_CERTIFICATE if self._certificate else _IDENTITY_PROVIDER)
        if not context.connections.take(self.login.user, limits.connections):
            self._refuse("too many connections of this user")
            conn.disconnect(DISC_TOO_MANY_CONNECTIONS, "You have too many connections open.")
            return
        context.record(AuditEvent.LOGIN, self.who)
        self._open = OpenConnection(
            self.who.connection,
            self.login.user,
            self.who.source,
            self._key,
            context.now(),
            self._cut,
            self._notify,
            self.login.server,
            self.who.client,
            self.who.key,
        )
        context.sessions.add(self._open)
        if self.login.server:
            server = ObjectKey(own_namespace(self.login.user), self.login.server)
            self.upstream = Upstream(
                context.servers, context.signer, server, self.login.user, self.who.connection
            )

    def connection_lost(self, exc: Exception | None) -> None:
        self._settle(logged_in=False)
        self._allow(None)
        if self._device is not None:
            self._device.close()
        if self.upstream is not None:
            self.upstream.close()
        if self._open is not None:
            self.context.sessions.remove(self._open)
            self.context.connections.give_back(self.login.user)
            self.context.record(AuditEvent.LOGOUT, self.who, reason=self._reason or str(exc or ""))
        elif self._refused:
            refusal = self._device.refusal if self._device is not None else ""
            self._refuse(refusal or "no key that lets this user in")

    def session_requested(self) -> Session:
        if not self.take_channel():
            self._refuse("too many channels of this user")
            raise asyncssh.ChannelOpenError(OPEN_RESOURCE_SHORTAGE, "you have too many channels open")
        return Session(self)

    def server_requested(self, listen_host: str, listen_port: int) -> bool:
        self._refuse(f"a forward to the client of {listen_host[:80]}", port=listen_port)
        return self._say_next(_NO_REMOTE_FORWARD)

    def unix_server_requested(self, listen_path: str) -> bool:
        self._refuse(f"a forward to the client of {listen_path[:80]}")
        return self._say_next(_NO_REMOTE_FORWARD)

    def unix_connection_requested(self, dest_path: str) -> bool:
        self._refuse(f"a forward to the socket {dest_path[:80]}")
        raise asyncssh.ChannelOpenError(
            OPEN_ADMINISTRATIVELY_PROHIBITED, "sockets are not forwarded; forward a port"
        )

    def connection_requested(
        self, dest_host: str, dest_port: int, orig_host: str, orig_port: int
    ) -> Awaitable[asyncssh.SSHTCPSession[bytes]]:
        del orig_host, orig_port
        server = server_meant(self.login, dest_host)
        if server is None:
            self._refuse("not a server of this user", dest_host, dest_port)
            raise asyncssh.ChannelOpenError(
                OPEN_ADMINISTRATIVELY_PROHIBITED, f"{dest_host[:80]} is not a server of yours"
            )
        return self._forward(server, dest_port)

    async def _forward(self, server: str, port: int) -> asyncssh.SSHTCPSession[bytes]:
        context = self.context
        if not self.take_channel():
            self._refuse("too many channels of this user", server, port)
            raise asyncssh.ChannelOpenError(OPEN_RESOURCE_SHORTAGE, "you have too many channels open")
        try:
            # Written down before anything is done, a wake among it.
            context.record(AuditEvent.FORWARD, self.who, server=server, port=port)
            key = ObjectKey(own_namespace(self.login.user), server)
            await self.provisioned(lambda _line: None)
            running = await context.servers.wake(key, lambda _line: None)
            inside = SSH_PORT if port == _SSH and running.host_key else port
            forward = Forward(context.servers.connect(running, inside), server)
            await forward.open()
        except Error as error:
            self.give_back_channel()
            context.record(AuditEvent.FORWARD_END, self.who, server=server, port=port, reason=error.sentence)
            raise asyncssh.ChannelOpenError(OPEN_CONNECT_FAILED, error.sentence) from None

        async def carry(reader: asyncssh.SSHReader[bytes], writer: asyncssh.SSHWriter[bytes]) -> None:
            try:
                await forward.carry(reader, writer)
            finally:
                self.give_back_channel()
                context.record(
                    AuditEvent.FORWARD_END,
                    self.who,
                    server=server,
                    port=port,
                    bytes_sent=forward.sent,
                    bytes_received=forward.received,
                )

        return cast("asyncssh.SSHTCPSession[bytes]", SSHTCPStreamSession(carry))

    def next_session(self) -> str:
        """A name for a session of this connection, unique in the cluster."""
        self._channels += 1
        return f"{self.who.connection}-{self._channels}"

    def take_channel(self) -> bool:
        limits = self._limits
        return limits is not None and self.context.channels.take(self.login.user, limits.channels)

    def give_back_channel(self) -> None:
        self.context.channels.give_back(self.login.user)

    async def provisioned(self, tell: Callable[[str], None]) -> None:
        """Returns when the user can work. A first login asks for the user, once for each connection."""
        async with self._provisioning:
            user = self.context.directory.find(self.login.user)
            if user is not None and is_settled(user):
                return
            if self._denied is not None:
                raise self._denied
            if user is not None:
                await self.context.first_logins.wait(self.login.user, tell)
            else:
                await self._provision(tell)

    async def _provision(self, tell: Callable[[str], None]) -> None:
        token = self._device.token if self._device is not None else ""
        certificate = "" if token else certificate_line(self._certificate)
        request = DevServerUserRequestSpec(user=self.login.user, certificate=certificate, id_token=token)
        self.context.record(AuditEvent.PROVISION, self.who)
        try:
            await self.context.first_logins.provision(self.who.connection, request, tell)
        except Denied as error:
            self._denied = error
            self._refuse(error.sentence)
            raise

    @property
    def _may_be_first(self) -> bool:
        """True where this login may make the user: by a certificate, or by the token that it has brought."""
        directory, confirmed = self.context.directory, self._device is not None and self._device.token
        first = directory.policy.first_login
        allowed = first.identity_provider if confirmed else first.certificates
        return allowed and directory.find(self.login.user) is None

    @property
    def _limits(self) -> UserLimits | None:
        """None for a user who may not log in now."""
        directory = self.context.directory
        user = directory.user(self.login.user)
        if user is not None:
            return user.spec.limits
        return directory.policy.first_login.limits if self._may_be_first else None

    async def _validate_key(self, username: str, key_data: bytes, msg: bytes, signature: bytes) -> bool:
        valid = await self._check_key(username, key_data, msg, signature)
        if valid and msg:
            self._certificate = key_data
        return valid

    def _allow(self, seconds: float | None) -> None:
        """Hangs up on a login that is not over in time. None is for one that is."""
        if self._grace is not None:
            self._grace.cancel()
            self._grace = None
        if seconds is not None and self._connection is not None:
            self._grace = asyncio.get_running_loop().call_later(seconds, self._connection.abort)

    def take_refusals(self) -> list[str]:
        """The refusals of which the user has not been told."""
        told, self._refusals = self._refusals, []
        return told

    async def _refuse_agent(self) -> bool:
        self._refuse("a forwarded agent")
        return self._say_next(_NO_AGENT)

    async def _refuse_x11(
        self, chan: asyncssh.SSHServerChannel[AnyStr], auth_proto: bytes, auth_data: bytes, screen: int
    ) -> None:
        del chan, auth_proto, auth_data, screen
        self._refuse("a forwarded X11 display")
        self._say_next(_NO_X11)

    def _say_next(self, sentence: str) -> Literal[False]:
        if sentence not in self._refusals:
            self._refusals.append(sentence)
        return False

    def _cut(self, reason: str) -> None:
        self._reason = reason
        if self._connection is not None:
            self._connection.disconnect(DISC_BY_APPLICATION, f"Closed: {reason}.")

    def _notify(self, text: str) -> None:
        for session in self.sessions:
            if session.has_terminal:
                session.say("", text)

    def _refuse(self, reason: str, server: str = "", port: int = 0) -> None:
        self.context.record(AuditEvent.REFUSED, self.who, reason=reason, server=server, port=port)

    def _settle(self, *, logged_in: bool) -> None:
        if self._waiting:
            self._waiting = False
            self.context.sources.settle(self.who.source, logged_in=logged_in, refused=self._refused)

    def _set_who(self, key: str = "") -> None:
        client = str(self._connection.get_extra_info("client_version", "")) if self._connection else ""
        self.who = Who(
            self.who.connection,
            self.login.user,
            self.who.source,
            client,
            key,
            self.login.server,
        )
