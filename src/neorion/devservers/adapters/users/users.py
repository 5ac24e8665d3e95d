"""The users of one cluster: added, listed, given access, suspended, removed."""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

import anyio
import msgspec

from neorion.devservers.adapters.install import GUARDS, KINDS, PART_OF, ChangeType, PlannedChange, until
from neorion.devservers.decide import HOME_LABEL
from neorion.devservers.decide.tenant import checked_quota, quota_of
from neorion.devservers.model.kube_types import DEVSERVERS, USERS, DevServerUser
from neorion.devservers.model.tenancy import (
    BASTION_ACCOUNT,
    ROLE,
    SYSTEM_NAMESPACE,
    USER_CONTROLLER,
    USER_LABEL,
    account_name,
    own_namespace,
)
from neorion.devservers.model.user import DevServerUserSpec, UserPhase, UserQuota
from neorion.keel.base import NAME_MAX, Conflict, Deadline, Duration, Invalid, NotFound, did_you_mean, is_name
from neorion.keel.kube import TOKEN_LIFE, MergePatch, ObjectKey, Selector, ServiceAccountToken, UnknownKind
from neorion.keel.kube.client import Client
from neorion.keel.kube.core import CLAIM, DEFINITION, NAMESPACE, RESOURCE_QUOTA, Namespace

MANAGER: Final = "devctl"
# The server grants no shorter token.
_TOKEN_LIFE_MIN: Final = Duration.of(minutes=10)
# A controller that runs answers within a second; one that has just lost its leader within ten.
_TAKEN_UP: Final = Duration.of(seconds=30)
_POLL_EVERY: Final = Duration.of(ms=250)


@dataclass(frozen=True, slots=True)
class UserRequest:
    """An administrator's request. Keys, groups, login and queue that are None stay; empty ones are removed."""

    quota: UserQuota = UserQuota()  # noqa: RUF009 -- frozen
    keys: tuple[str, ...] | None = None
    groups: tuple[str, ...] | None = None
    github: str | None = None
    cluster_queue: str | None = None


@dataclass(frozen=True, slots=True)
class User:
    """A user, and what they have. `volumes` are claims of their own, beside the homes of servers."""

    name: str
    namespace: str
    servers: int
    homes: int
    volumes: int
    keys: int
    state: str
    created: str

    @property
    def belongings(self) -> str:
        return f"{self.servers} servers, {self.homes} homes and {self.volumes} other volumes"

    def check_empty(self) -> None:
        if self.servers or self.homes or self.volumes:
            raise Conflict(
                "devservers.user_has_homes",
                f"{self.name} has {self.belongings}.",
                hint="Have what is worth it copied, then remove the user with --with-homes.",
            )


class TenantManager:
    """Adds, suspends and removes users, with the rights of a cluster administrator."""

    def __init__(self, client: Client) -> None:
        self._client = client

    async def add(
        self, name: str, request: UserRequest, *, dry_run: bool = False
    ) -> tuple[PlannedChange, ...]:
        """Writes the DevServerUser; the user controller does the rest. Safe to repeat: what is given replaces what was."""
        _check_name(name)
        checked_quota(request.quota)
        await self._check_installed()
        await self._check_free(name)
        before = await self._find(name)
        kept = before.spec if before is not None else DevServerUserSpec()
        spec = {
            "keys": list(kept.keys if request.keys is None else request.keys),
            "groups": list(kept.groups if request.groups is None else request.groups),
            "quota": msgspec.to_builtins(request.quota),
        }
        github = kept.github if request.github is None else request.github
        queue = kept.cluster_queue if request.cluster_queue is None else request.cluster_queue
        given = {"github": github, "clusterQueue": queue}
        spec |= {field: value for field, value in given.items() if value}
        manifest = {"metadata": {"name": name}, "spec": spec}
        client = self._client.rehearsing() if dry_run else self._client
        # By force: this command wins over earlier writers of the object.
        after = await client.apply(USERS, manifest, MANAGER, force=True)
        unchanged = before is not None and before.spec == after.spec
        outcome = (
            ChangeType.CREATED
            if before is None
            else ChangeType.UNCHANGED
            if unchanged
            else ChangeType.CHANGED
        )
        return (PlannedChange(USERS.name, name, "", outcome),)

    async def refresh(self, name: str, *, dry_run: bool = False) -> tuple[PlannedChange, ...]:
        """Makes a DevServerUser of a user from before there were any, with the quota that they were given."""
        user = await self.get(name)
        if await self._find(name) is not None:
            return ()
        quota = await self._client.get(RESOURCE_QUOTA, ROLE, user.namespace)
        return await self.add(name, UserRequest(quota=quota_of(quota.spec.hard)), dry_run=dry_run)

    async def suspend(self, name: str, *, suspended: bool) -> None:
        await self.get(name)
        try:
            await self._client.patch(USERS, name, MergePatch({"spec": {"suspended": suspended}}))
        except NotFound:
            raise _not_an_object(name) from None

    async def wait_provisioned(self, name: str, patience: Duration) -> None:
        """Waits until the user controller has applied the DevServerUser's spec."""
        last: DevServerUser | None = None
        with anyio.move_on_after(min(patience.seconds, _TAKEN_UP.seconds)):
            while last is None or last.status.observed_generation < last.meta.generation:
                last = await self._poll(name)
        if last is None or last.status.observed_generation < last.meta.generation:
            raise Deadline(
                "devservers.no_user_controller",
                f"The DevServerUser {name} is written, and no user controller has taken it up within {_TAKEN_UP}.",
                hint=f"Install it: devctl install; if it is, look at it: kubectl logs --namespace {SYSTEM_NAMESPACE}"
                f" deployment/{BASTION_ACCOUNT} --container {USER_CONTROLLER}",
            )
        with anyio.move_on_after(patience.seconds):
            while not _is_settled(last):
                last = await self._poll(name)
            return
        raise Deadline(
            "devservers.user_not_ready",
            f"{name} was not ready after {patience}: {last.status.message or 'the user controller says nothing.'}",
            hint=f"Look again: kubectl describe devserveruser {name}",
        )

    async def _poll(self, name: str) -> DevServerUser:
        await self._client.transport.clock.sleep(_POLL_EVERY)
        return await self._client.get(USERS, name)

    async def all(self) -> list[User]:
        spaces = (await self._client.list(NAMESPACE, select=Selector(labels=USER_LABEL))).items
        by_name = {one.meta.labels[USER_LABEL]: one for one in spaces}
        objects = {one.meta.name: one for one in await self._objects()}
        names = sorted({*by_name, *objects})
        return [await self._user(name, by_name.get(name), objects.get(name)) for name in names]

    async def get(self, name: str) -> User:
        space = await self._space(name)
        found = await self._find(name) if is_name(name) else None
        mine = space is not None and space.meta.labels.get(USER_LABEL) == name
        if found is None and not mine:
            known = [one.name for one in await self.all()]
            raise NotFound(
                "devservers.no_user",
                f'There is no user "{name}".',
                hint=did_you_mean(name, known) or f"Add them: devctl admin user add {name}",
            )
        return await self._user(name, space if mine else None, found)

    async def _space(self, name: str) -> Namespace | None:
        try:
            return await self._client.get(NAMESPACE, own_namespace(name))
        except NotFound:
            return None

    async def _find(self, name: str) -> DevServerUser | None:
        try:
            return await self._client.get(USERS, name)
        except NotFound:
            # Also where the whole kind is missing.
            return None

    async def _objects(self) -> Sequence[DevServerUser]:
        try:
            return (await self._client.list(USERS)).items
        except UnknownKind:
            return ()

    async def token(self, name: str, life: Duration) -> ServiceAccountToken:
        """Good for an hour at most: who has it is the user, from wherever they come."""
        if not _TOKEN_LIFE_MIN <= life <= TOKEN_LIFE:
            raise Invalid(
                "devservers.token_life",
                f"A token of {life} is not given.",
                hint=f"Ask for {_TOKEN_LIFE_MIN} to {TOKEN_LIFE}, and for another one later.",
            )
        user = await self.get(name)
        return await self._client.token(account_name(name), user.namespace, life=life)

    async def remove(self, name: str, patience: Duration, *, with_homes: bool = False) -> None:
        """Their rights first, then servers while the operator may still let them go, then the namespace with what is left."""
        user = await self.get(name)
        if not with_homes:
            user.check_empty()
        with anyio.move_on_after(patience.seconds):
            with suppress(NotFound):
                await self._client.delete(USERS, name)
            await self._remove_servers(user.namespace)
            with suppress(NotFound):
                await self._client.delete(NAMESPACE, user.namespace)
            await until(self._client, NAMESPACE, ObjectKey("", user.namespace), lambda space: space is None)
            return
        raise Deadline(
            "devservers.user_not_removed",
            f"Something of {name} was still there after {patience}.",
            hint="Run it again; kubectl get namespace -o yaml says what it waits for.",
        )

    async def _remove_servers(self, namespace: str) -> None:
        for server in await self._servers(namespace):
            await self._client.delete(DEVSERVERS, server.name, namespace)
            await until(self._client, DEVSERVERS, server, lambda thing: thing is None)

    async def _servers(self, namespace: str) -> list[ObjectKey]:
        try:
            found = await self._client.list(DEVSERVERS, namespace)
        except UnknownKind:
            return []
        return [one.meta.key for one in found.items]

    async def _user(self, name: str, space: Namespace | None, found: DevServerUser | None) -> User:
        namespace = own_namespace(name)
        claims = (await self._client.list(CLAIM, namespace)).items
        homes = sum(HOME_LABEL in one.meta.labels for one in claims)
        meta = found.meta if found is not None else space.meta if space is not None else None
        return User(
            name=name,
            namespace=namespace,
            servers=len(await self._servers(namespace)),
            homes=homes,
            volumes=len(claims) - homes,
            keys=len(found.keys) if found is not None else 0,
            state=_state(space, found),
            created=(meta.created if meta is not None else None) or "",
        )

    async def _check_installed(self) -> None:
        try:
            for kind in (DEVSERVERS, USERS):
                await self._client.get(DEFINITION, kind.resource)
        except NotFound:
            raise NotFound(
                "devservers.not_installed",
                "This cluster does not know development servers and their users.",
                hint="Install or upgrade them first: devctl install.",
            ) from None
        for guard in (kind for kind in KINDS if kind.name in GUARDS):
            if not (await self._client.list(guard, select=Selector(labels=PART_OF))).items:
                raise Conflict(
                    "devservers.unguarded",
                    "Nothing here holds users within their rights: the guards are not installed.",
                    hint="Install them first: devctl install.",
                )

    async def _check_free(self, name: str) -> None:
        """A namespace of that name that is not this user's is not taken over."""
        space = await self._space(name)
        if space is None:
            return
        if space.meta.labels.get(USER_LABEL) != name:
            raise Conflict(
                "devservers.namespace_taken",
                f"There is a namespace {own_namespace(name)}, and it is not that of a user {name}.",
                hint=f"Choose another name, or label it: kubectl label namespace {own_namespace(name)} {USER_LABEL}={name}",
            )
        if space.meta.deleted is not None:
            raise Conflict(
                "devservers.user_leaving",
                f"The namespace {own_namespace(name)} is just being deleted.",
                hint="Try again when it is gone.",
            )


def _state(space: Namespace | None, found: DevServerUser | None) -> str:
    if space is not None and space.meta.deleted is not None:
        return "Terminating"
    if found is None:
        return "Unmanaged"
    return (found.status.phase or UserPhase.PENDING).value


def _is_settled(user: DevServerUser) -> bool:
    if user.status.phase is UserPhase.FAILED:
        raise Conflict(
            "devservers.user_failed",
            user.status.message or f"The user controller could not provision {user.meta.name}.",
            hint=f"Look at it: kubectl describe devserveruser {user.meta.name}",
        )
    return user.status.phase in {UserPhase.PROVISIONED, UserPhase.SUSPENDED}


def _not_an_object(name: str) -> NotFound:
    return NotFound(
        "devservers.no_user_object",
        f"{name} is a user from before there were DevServerUsers.",
        hint=f"Make one of them: devctl admin user refresh {name}",
    )


def _check_name(name: str) -> None:
    plain = own_namespace(name).removeprefix("dev-")
    if not is_name(name) or len(f"dev-{name}") > NAME_MAX or plain != name:
        raise Invalid(
            "devservers.user_name",
            f'"{name[:80]}" cannot be the name of a user.',
            hint=f"Use small letters, digits and hyphens{f', as in {plain}' if is_name(plain) else ''}.",
        )
