"""The users who may log in: DevServerUsers in memory, so that a login needs no request to the API server."""

from collections.abc import Callable

from neorion.devservers.adapters.identity import wire_form
from neorion.devservers.model.kube_types import LOGIN_POLICIES, USERS, DevServerUser
from neorion.devservers.model.login import POLICY_NAME, DevServerLoginPolicySpec
from neorion.keel.kube import ObjectKey
from neorion.keel.kube.control import InformerFactory, Priority


class Directory:
    """Public keys are read once, and again when a user has others."""

    def __init__(self, informers: InformerFactory) -> None:
        self._users = informers.of(USERS)
        self._policies = informers.of(LOGIN_POLICIES)
        self._keys: dict[tuple[str, ...], frozenset[bytes]] = {}

    @property
    def policy(self) -> DevServerLoginPolicySpec:
        found = self._policies.get(ObjectKey("", POLICY_NAME))
        return found.spec if found is not None else DevServerLoginPolicySpec()

    def find(self, name: str) -> DevServerUser | None:
        """The object of a user, also of one who may not log in."""
        return self._users.get(ObjectKey("", name))

    def user(self, name: str) -> DevServerUser | None:
        """None for a user who may not log in now."""
        found = self.find(name)
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
