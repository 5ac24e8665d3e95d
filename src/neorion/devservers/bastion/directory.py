"""Who may log in: DevServerUsers as they are now, held in memory so that a login asks the API server nothing."""

from collections.abc import Callable

import asyncssh

from neorion.devservers.model.kube_types import USERS, DevServerUser
from neorion.keel.kube import ObjectKey
from neorion.keel.kube.control import InformerFactory, Priority
from neorion.keel.telemetry import logger

log = logger(__name__)


class Directory:
    """Each user's public keys are read once for each version of the user."""

    def __init__(self, informers: InformerFactory) -> None:
        self._users = informers.of(USERS)
        self._keys: dict[tuple[str, int], frozenset[bytes]] = {}

    def user(self, name: str) -> DevServerUser | None:
        """None for a user who may not log in now."""
        found = self._users.get(ObjectKey("", name))
        gone = found is None or found.spec.suspended or found.meta.deleted is not None
        return None if gone else found

    def admits(self, name: str, key: bytes) -> bool:
        """Whether the user may log in with this public key, in the form it has on the wire."""
        user = self.user(name)
        return user is not None and key in self._keys_of(user)

    def listen(self, changed: Callable[[str], None]) -> None:
        """Calls it with the name of every user who has changed or is gone."""

        def hear(before: DevServerUser | None, after: DevServerUser | None, lane: Priority) -> None:
            del lane
            known = after or before
            if known is not None:
                if before is not None:
                    self._keys.pop((before.meta.uid, before.meta.generation), None)
                changed(known.meta.name)

        self._users.listen(hear)

    def _keys_of(self, user: DevServerUser) -> frozenset[bytes]:
        version = (user.meta.uid, user.meta.generation)
        if version not in self._keys:
            self._keys[version] = frozenset(filter(None, map(wire_form, user.spec.keys)))
        return self._keys[version]


def wire_form(line: str) -> bytes | None:
    """None for a line that the API server took for a public key and that is none."""
    try:
        return asyncssh.import_public_key(line).public_data
    except (asyncssh.KeyImportError, ValueError):
        log.warning("public key cannot be read", begins=line[:30])
        return None
