"""The users who may log in: DevServerUsers in memory, so that a login needs no request to the API server."""

from collections.abc import Callable
from pathlib import Path

import asyncssh

from neorion.devservers.model.kube_types import USERS, DevServerUser
from neorion.keel.kube import ObjectKey
from neorion.keel.kube.control import InformerFactory, Priority
from neorion.keel.telemetry import logger

log = logger(__name__)


class Directory:
    """Public keys are read once, and again when a user has others."""

    def __init__(self, informers: InformerFactory) -> None:
        self._users = informers.of(USERS)
        self._keys: dict[tuple[str, ...], frozenset[bytes]] = {}

    def user(self, name: str) -> DevServerUser | None:
        """None for a user who may not log in now."""
        found = self._users.get(ObjectKey("", name))
        gone = found is None or found.spec.suspended or found.meta.deleted is not None
        return None if gone else found

    def admits(self, name: str, key: bytes) -> bool:
        """Returns whether the user may log in with this public key, in the form it has on the wire."""
        user = self.user(name)
        return user is not None and key in self._keys_of(user)

    def listen(self, changed: Callable[[str], None]) -> None:
        """Calls it with the name of every user who has changed or is gone."""

        def on_change(before: DevServerUser | None, after: DevServerUser | None, lane: Priority) -> None:
            del lane
            known = after or before
            if known is not None:
                if before is not None:
                    self._keys.pop(before.keys, None)
                changed(known.meta.name)

        self._users.listen(on_change)

    def _keys_of(self, user: DevServerUser) -> frozenset[bytes]:
        if user.keys not in self._keys:
            self._keys[user.keys] = frozenset(filter(None, map(wire_form, user.keys)))
        return self._keys[user.keys]


class UserAuthorities:
    """The authorities of a company whose user certificates log in: a file of public keys, read at each login."""

    def __init__(self, file: Path | None = None) -> None:
        self._file = file

    def authorized_keys(self, user: str) -> asyncssh.SSHAuthorizedKeys | None:
        """Admits certificates that name the user among their principals. None where there is no authority."""
        lines = [f'cert-authority,principals="{user}" {line}' for line in self._lines() if wire_form(line)]
        return asyncssh.import_authorized_keys("\n".join(lines)) if lines else None

    def _lines(self) -> list[str]:
        if self._file is None:
            return []
        try:
            text = self._file.read_text(encoding="utf-8")
        except FileNotFoundError:
            return []
        except (OSError, UnicodeDecodeError) as error:
            log.warning("user authorities cannot be read", file=str(self._file), error=str(error))
            return []
        return [line.strip() for line in text.splitlines() if line.strip() and not line.startswith("#")]


def wire_form(line: str) -> bytes | None:
    """None for a line that is not a public key, although the API server admitted it."""
    try:
        return asyncssh.import_public_key(line).public_data
    except (asyncssh.KeyImportError, ValueError):
        log.warning("public key cannot be read", begins=line[:30])
        return None
