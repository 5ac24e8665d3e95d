"""The records of the bastion: one for each login, first login, session, forward and refusal."""

from enum import StrEnum

from msgspec import Struct


class AuditEvent(StrEnum):
    """The kind of a record."""

    LOGIN = "login"
    LOGOUT = "logout"
    SESSION = "session"
    SESSION_END = "session-end"
    PROVISION = "provision"
    FORWARD = "forward"
    FORWARD_END = "forward-end"
    REFUSED = "refused"


class AuditRecord(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One line of an audit log. Keys stand here by their fingerprints.

    `connection` ties together what one login did. `replica` is the bastion that wrote the line; each has a chain of its
    own. `recording` names the file of a terminal session, and `digest` is its SHA-256 at the end. `hash` covers every other field, and `previous` is the hash of the
    line before: a line that is edited, dropped or moved breaks the chain.
    """

    number: int
    time: str
    event: AuditEvent
    connection: str
    user: str = ""
    source: str = ""
    client: str = ""
    key: str = ""
    server: str = ""
    port: int = 0
    command: str = ""
    terminal: bool = False
    reason: str = ""
    exit_code: int | None = None
    bytes_sent: int = 0
    bytes_received: int = 0
    recording: str = ""
    digest: str = ""
    replica: str = ""
    previous: str = ""
    hash: str = ""
