"""First logins: asks the user controller for the user, and waits until they can work."""

from collections.abc import Callable
from contextlib import suppress
from typing import Final

import anyio

from neorion.devservers.bastion.directory import Directory
from neorion.devservers.model.kube_types import USER_REQUESTS, DevServerUser
from neorion.devservers.model.login import DevServerUserRequestSpec, RequestPhase
from neorion.devservers.model.tenancy import SYSTEM_NAMESPACE, own_namespace
from neorion.devservers.model.user import UserConditionType, UserPhase
from neorion.keel.base import Conflict, Deadline, Denied, Duration
from neorion.keel.clock import Clock
from neorion.keel.kube import AlreadyExists, KubeApi

_PATIENCE: Final = Duration.of(minutes=2)
_POLL: Final = Duration.of(ms=200)


class FirstLogins:
    """Makes requests and no users: the bastion has no right to those."""

    def __init__(self, api: KubeApi, directory: Directory, clock: Clock) -> None:
        self._api = api
        self._directory = directory
        self._clock = clock

    async def provision(
        self, name: str, request: DevServerUserRequestSpec, tell: Callable[[str], None]
    ) -> None:
        """Makes the request of that name and returns when its user can work. Raises Denied where it is refused."""
        tell(f"This is your first login. Creating the user {request.user}.")
        with anyio.move_on_after(_PATIENCE.seconds):
            await self._approval(name, request)
            await self._provisioned(request.user, tell)
            return
        raise _late(request.user)

    async def wait(self, user: str, tell: Callable[[str], None]) -> None:
        """Returns when a user that is there can work."""
        with anyio.move_on_after(_PATIENCE.seconds):
            await self._provisioned(user, tell)
            return
        raise _late(user)

    async def _approval(self, name: str, request: DevServerUserRequestSpec) -> None:
        manifest = {
            "metadata": {"name": name, "namespace": SYSTEM_NAMESPACE},
            "spec": {
                "user": request.user,
                "certificate": request.certificate,
                "idToken": request.id_token,
            },
        }
        # An answer to an earlier try of this login may have been lost.
        with suppress(AlreadyExists):
            await self._api.create(USER_REQUESTS, manifest)
        while True:
            status = (await self._api.get(USER_REQUESTS, name, SYSTEM_NAMESPACE)).status
            if status.phase is RequestPhase.DENIED:
                raise Denied(
                    "devservers.first_login_denied",
                    status.message or f"There is to be no user {request.user}.",
                    hint="Ask an administrator to add you.",
                )
            if status.phase is RequestPhase.APPROVED:
                return
            await self._clock.sleep(_POLL)

    async def _provisioned(self, name: str, tell: Callable[[str], None]) -> None:
        told: set[str] = set()
        while True:
            user = self._directory.find(name)
            for line in _steps(user) if user is not None else ():
                if line not in told:
                    told.add(line)
                    tell(line)
            if user is not None and is_settled(user):
                return
            await self._clock.sleep(_POLL)


def is_settled(user: DevServerUser) -> bool:
    """True for a user who can work. Raises Conflict where the user controller could not provision them."""
    if user.status.phase is UserPhase.FAILED:
        raise Conflict(
            "devservers.user_failed",
            user.status.message or f"The user controller could not provision {user.meta.name}.",
            hint=f"Look at it: kubectl describe devserveruser {user.meta.name}",
        )
    return user.status.phase in {UserPhase.PROVISIONED, UserPhase.SUSPENDED}


def _steps(user: DevServerUser) -> list[str]:
    done = {one.type for one in user.status.conditions if one.status == "True"}
    lines = {
        UserConditionType.NAMESPACE: f"The namespace {own_namespace(user.meta.name)} is ready.",
        UserConditionType.QUOTA: "The quota is counted.",
        UserConditionType.READY: "You can work now.",
    }
    return [line for kind, line in lines.items() if kind in done]


def _late(user: str) -> Deadline:
    return Deadline(
        "devservers.provisioning_late",
        f"The user {user} was not provisioned after {_PATIENCE}.",
        hint="Log in again in a minute, or ask an administrator.",
    )
