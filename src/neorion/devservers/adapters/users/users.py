"""The users of one cluster: added, listed, let in, removed."""

from dataclasses import dataclass
from typing import Final

import anyio

from neorion.devservers.adapters.install import GUARDS, KINDS, PART_OF, Step, carry_out, plan, until
from neorion.devservers.adapters.users.kit import SERVERS_COUNTED, Allowance, kit
from neorion.devservers.decide import HOME_LABEL
from neorion.devservers.model.flavor import is_gpu
from neorion.devservers.model.objects import FLAVORS, SERVERS
from neorion.devservers.model.users import (
    CREATED_BY_LABEL,
    ROLE,
    USER_LABEL,
    account_name,
    own_namespace,
)
from neorion.keel.base import NAME_MAX, Conflict, Deadline, Duration, Invalid, NotFound, did_you_mean, is_name
from neorion.keel.kube import TOKEN_LIFE, Key, Merge, Select, Token, UnknownKind
from neorion.keel.kube.client import Client
from neorion.keel.kube.core import CLAIM, DEFINITION, NAMESPACE, NODE, RESOURCE_QUOTA, Namespace

# The server grants no shorter token.
_TOKEN_LIFE_MIN: Final = Duration.of(minutes=10)
_RECOUNT: Final = Duration.of(seconds=2)


@dataclass(frozen=True, slots=True)
class User:
    """A user, and what they have. `volumes` are claims of their own, beside the homes of servers."""

    name: str
    namespace: str
    servers: int
    homes: int
    volumes: int
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


class Users:
    """As an administrator of the cluster."""

    def __init__(self, client: Client) -> None:
        self._client = client

    async def add(
        self, name: str, allowance: Allowance, created_by: str, *, dry_run: bool = False
    ) -> tuple[Step, ...]:
        """Safe to repeat; another allowance takes the place of the one before."""
        _check_name(name)
        await self._check_installed()
        await self._check_free(name)
        manifests = kit(name, allowance, created_by, await self._gpu_kinds())
        # By force: a user's rights are what this says, whatever somebody made of them since.
        steps = await plan(self._client, manifests, force=True)
        if not dry_run:
            await carry_out(self._client, manifests, steps, force=True)
        return steps

    async def refresh(self, name: str, *, dry_run: bool = False) -> tuple[Step, ...]:
        """The same as adding them again with what they may have: kinds of GPUs that the cluster got since then are counted too."""
        user = await self.get(name)
        space = await self._client.get(NAMESPACE, user.namespace)
        quota = await self._client.get(RESOURCE_QUOTA, ROLE, user.namespace)
        made_by = space.meta.labels.get(CREATED_BY_LABEL, "devctl")
        return await self.add(name, Allowance.of(quota.spec.hard), made_by, dry_run=dry_run)

    async def _gpu_kinds(self) -> set[str]:
        """What flavors ask for, and what nodes have: pods of a user's own may ask for it too."""
        flavors, nodes = await self._client.list(FLAVORS), await self._client.list(NODE)
        asked = [{**one.spec.resources.requests, **one.spec.resources.limits} for one in flavors.items]
        there = [one.status.allocatable for one in nodes.items]
        return {resource for amounts in (*asked, *there) for resource in amounts if is_gpu(resource)}

    async def wait_counted(self, name: str, patience: Duration) -> None:
        """Returns when the user's quota is counted: until then everything that it limits is refused.

        A kind that has just been installed is known to the cluster's accountant half a minute later, and a quota that
        was there before only when its limits change: so they do, to nothing and back.
        """
        await self.get(name)
        with anyio.move_on_after(patience.seconds):
            while not await self._is_counted(name):
                await self._recount(name)
                await self._client.transport.clock.sleep(_RECOUNT)
            return
        raise Deadline(
            "devservers.quota_not_counted",
            f"The quota of {name} was not counted after {patience}, and refuses everything until it is.",
            hint=f"Add the user again when the cluster's controller manager runs: devctl admin user add {name}",
        )

    async def _is_counted(self, name: str) -> bool:
        quota = await self._client.get(RESOURCE_QUOTA, ROLE, own_namespace(name))
        return SERVERS_COUNTED in quota.status.used

    async def _recount(self, name: str) -> None:
        namespace = own_namespace(name)
        quota = await self._client.get(RESOURCE_QUOTA, ROLE, namespace)
        # To the end, once begun: nobody must be left with nothing because somebody had no patience.
        with anyio.CancelScope(shield=True):
            for most in ("0", quota.spec.hard[SERVERS_COUNTED]):
                limit = Merge({"spec": {"hard": {SERVERS_COUNTED: most}}})
                await self._client.patch(RESOURCE_QUOTA, ROLE, limit, namespace)

    async def all(self) -> list[User]:
        spaces = await self._client.list(NAMESPACE, select=Select(labels=USER_LABEL))
        return [await self._user(one) for one in sorted(spaces.items, key=lambda one: one.meta.name)]

    async def get(self, name: str) -> User:
        try:
            space = await self._client.get(NAMESPACE, own_namespace(name))
        except NotFound:
            space = Namespace()
        if space.meta.labels.get(USER_LABEL) != name:
            known = [one.name for one in await self.all()]
            raise NotFound(
                "devservers.no_user",
                f'There is no user "{name}".',
                hint=did_you_mean(name, known) or f"Add them: devctl admin user add {name}",
            )
        return await self._user(space)

    async def token(self, name: str, life: Duration) -> Token:
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
        """Servers first, while the operator may still let them go; then the namespace with all that is left."""
        user = await self.get(name)
        if not with_homes:
            user.check_empty()
        with anyio.move_on_after(patience.seconds):
            await self._remove_servers(user.namespace)
            await self._client.delete(NAMESPACE, user.namespace)
            await until(self._client, NAMESPACE, Key("", user.namespace), lambda space: space is None)
            return
        raise Deadline(
            "devservers.user_not_removed",
            f"Something of {name} was still there after {patience}.",
            hint="Run it again; kubectl get namespace -o yaml says what it waits for.",
        )

    async def _remove_servers(self, namespace: str) -> None:
        for server in await self._servers(namespace):
            await self._client.delete(SERVERS, server.name, namespace)
            await until(self._client, SERVERS, server, lambda thing: thing is None)

    async def _servers(self, namespace: str) -> list[Key]:
        try:
            found = await self._client.list(SERVERS, namespace)
        except UnknownKind:
            return []
        return [one.meta.key for one in found.items]

    async def _user(self, space: Namespace) -> User:
        name = space.meta.name
        claims = (await self._client.list(CLAIM, name)).items
        homes = sum(HOME_LABEL in one.meta.labels for one in claims)
        return User(
            name=space.meta.labels[USER_LABEL],
            namespace=name,
            servers=len(await self._servers(name)),
            homes=homes,
            volumes=len(claims) - homes,
            state=space.status.phase,
            created=space.meta.created or "",
        )

    async def _check_installed(self) -> None:
        try:
            await self._client.get(DEFINITION, SERVERS.resource)
        except NotFound:
            raise NotFound(
                "devservers.not_installed",
                "This cluster does not know development servers.",
                hint="Install them first: devctl install",
            ) from None
        for guard in (kind for kind in KINDS if kind.name in GUARDS):
            if not (await self._client.list(guard, select=Select(labels=PART_OF))).items:
                raise Conflict(
                    "devservers.unguarded",
                    "Nothing here holds users within their rights: the guards are not installed.",
                    hint="Install them first: devctl install",
                )

    async def _check_free(self, name: str) -> None:
        """A namespace of that name which is nobody's, or somebody else's, is not taken over."""
        try:
            space = await self._client.get(NAMESPACE, own_namespace(name))
        except NotFound:
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


def _check_name(name: str) -> None:
    plain = own_namespace(name).removeprefix("dev-")
    if not is_name(name) or len(f"dev-{name}") > NAME_MAX or plain != name:
        raise Invalid(
            "devservers.user_name",
            f'"{name[:80]}" cannot be the name of a user.',
            hint=f"Use small letters, digits and hyphens{f', as in {plain}' if is_name(plain) else ''}.",
        )
