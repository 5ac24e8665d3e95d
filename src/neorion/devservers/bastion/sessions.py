"""The connections that are open at this bastion: each can be closed."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from neorion.keel.base import Id


class ConnectionId(Id):
    """One SSH connection, as the audit log names it."""

    prefix = "ssh"


def ignore_notice(text: str) -> None:
    """Drops the notice: the connection has no terminals."""
    del text


@dataclass(slots=True)
class OpenConnection:
    """One connection that has logged in. `cut` closes it and says why; `notify` shows a line in its terminals."""

    id: str
    user: str
    source: str
    key: bytes
    since: str
    cut: Callable[[str], None]
    notify: Callable[[str], None] = ignore_notice
    server: str = ""
    client: str = ""
    fingerprint: str = ""


class Sessions:
    """The open connections of this process."""

    def __init__(self) -> None:
        self._open: dict[str, OpenConnection] = {}
        self._changed: list[Callable[[], None]] = []

    def __iter__(self) -> Iterator[OpenConnection]:
        return iter(list(self._open.values()))

    def __len__(self) -> int:
        return len(self._open)

    def get(self, name: str) -> OpenConnection | None:
        return self._open.get(name)

    def add(self, session: OpenConnection) -> None:
        self._open[session.id] = session
        self._notify()

    def remove(self, session: OpenConnection) -> None:
        self._open.pop(session.id, None)
        self._notify()

    def of_user(self, user: str) -> list[OpenConnection]:
        return [one for one in self._open.values() if one.user == user]

    def listen(self, changed: Callable[[], None]) -> None:
        """Calls it whenever a connection is opened or closed."""
        self._changed.append(changed)

    def _notify(self) -> None:
        for changed in self._changed:
            changed()
