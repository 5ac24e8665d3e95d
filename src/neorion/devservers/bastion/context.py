"""The parts that every connection of one bastion shares."""

import asyncio
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import TypedDict, Unpack

import msgspec

from neorion.devservers.adapters.identity import OpenIdClient, UserAuthorities
from neorion.devservers.bastion.audit_log import AuditLog
from neorion.devservers.bastion.directory import Directory
from neorion.devservers.bastion.first_logins import FirstLogins
from neorion.devservers.bastion.limits import DEFAULT_LIMITS, Limits, SourceLimits, UserCounts
from neorion.devservers.bastion.recordings import Recordings
from neorion.devservers.bastion.sessions import ConnectionId, Sessions
from neorion.devservers.bastion.upstream import Signer
from neorion.devservers.model.audit import AuditEvent, AuditRecord
from neorion.devservers.ports import Containers, ServerConnections
from neorion.keel.clock import Clock, Ids

# Texts of clients are cut before they are written.
TEXT_MAX = 1024


@dataclass(frozen=True, slots=True)
class Who:
    """The connection that a record is about."""

    connection: str
    user: str = ""
    source: str = ""
    client: str = ""
    key: str = ""
    server: str = ""


class Detail(TypedDict, total=False):
    """The fields of a record besides those of `Who`."""

    server: str
    port: int
    command: str
    terminal: bool
    reason: str
    exit_code: int | None
    bytes_sent: int
    bytes_received: int
    recording: str
    digest: str


@dataclass(slots=True)
class Context:
    """One process of the bastion."""

    directory: Directory
    servers: ServerConnections
    containers: Containers
    signer: Signer
    first_logins: FirstLogins
    audit: AuditLog
    clock: Clock
    ids: Ids
    limits: Limits = DEFAULT_LIMITS
    recordings: Recordings = field(init=False)
    recordings_folder: Path | None = None
    openid: OpenIdClient = field(init=False)
    authorities: UserAuthorities = field(default_factory=UserAuthorities)
    sessions: Sessions = field(default_factory=Sessions)
    connections: UserCounts = field(default_factory=UserCounts)
    channels: UserCounts = field(default_factory=UserCounts)
    device_logins: set[str] = field(default_factory=set[str])
    sources: SourceLimits = field(init=False)
    tasks: set[asyncio.Task[None]] = field(default_factory=set[asyncio.Task[None]])

    def __post_init__(self) -> None:
        self.sources = SourceLimits(self.limits, self.clock)
        self.recordings = Recordings(self.recordings_folder, self.clock)
        self.openid = OpenIdClient(self.clock)
        self.directory.listen(self._recheck)

    def new_id(self) -> str:
        return str(self.ids.new(ConnectionId))

    def record(self, event: AuditEvent, who: Who, **detail: Unpack[Detail]) -> None:
        """Returns when it is written: the event itself happens afterwards or not at all."""
        known = {
            name: value[:TEXT_MAX] if isinstance(value, str) else value for name, value in detail.items()
        }
        about = {name: value[:TEXT_MAX] for name, value in asdict(who).items()}
        fields = {**about, **{name: value for name, value in known.items() if value is not None}}
        self.audit.write(
            msgspec.convert({"number": 0, "time": self.now(), "event": event, **fields}, AuditRecord)
        )

    def now(self) -> str:
        moment = datetime.fromtimestamp(self.clock.now().ns // 1_000_000 / 1000, UTC)
        return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")

    def _recheck(self, user: str) -> None:
        """Cuts the sessions of a user who is suspended or gone, and those whose key is no longer the user's.

        Sessions of certificates have no key of the user: they end with the user alone.
        """
        for session in self.sessions.of_user(user):
            if self.directory.user(user) is None:
                session.cut("the user is suspended or removed")
            elif session.key and not self.directory.admits(user, session.key):
                session.cut("the key was taken away")
