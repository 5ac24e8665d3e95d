"""Brings an installation to a cluster, and takes it away again. Safe to repeat, and to break off at any point."""

from collections.abc import Iterable, Sequence
from typing import Final

import anyio

from neorion.devservers.adapters.install.plan import MANAGER, ChangeType, PlannedChange, plan
from neorion.devservers.adapters.install.resource_kinds import (
    GUARDS,
    KEPT,
    KINDS,
    PART_OF,
    Manifest,
    key_of,
    kind_of,
)
from neorion.devservers.adapters.install.rollout import until, until_rolled_out
from neorion.devservers.model.kube_types import DEVSERVERS
from neorion.devservers.model.tenancy import USER_LABEL
from neorion.keel.base import Conflict, Deadline, Duration, NotFound
from neorion.keel.kube import Kind, KubeObject, ObjectKey, Selector, UnknownKind, condition
from neorion.keel.kube.client import Client
from neorion.keel.kube.core import (
    DEFINITION,
    DEPLOYMENT,
    NAMESPACE,
    CustomResourceDefinition,
    Deployment,
    StatefulSet,
)

# The server needs a moment to serve a new kind; after this something is wrong with it.
ESTABLISHED: Final = Duration.of(seconds=60)
_WRITTEN: Final = frozenset({ChangeType.CREATED, ChangeType.CHANGED})
# An upgrade takes away what it no longer has, but no namespace with all that is in it.
_NEVER_PRUNED: Final = KEPT | {"Namespace"}


class Installer:
    """One cluster, as an administrator."""

    def __init__(self, client: Client) -> None:
        self._client = client

    async def plan(self, manifests: Sequence[Manifest], *, force: bool = False) -> tuple[PlannedChange, ...]:
        """Changes that `install` would make. Raises the error that would stop it."""
        steps = await plan(self._client, manifests, force=force)
        return (*steps, *(_removed(kind, key) for kind, key in await self._outdated(manifests)))

    async def install(
        self, manifests: Sequence[Manifest], *, force: bool = False
    ) -> tuple[PlannedChange, ...]:
        """Installs the manifests. All are tried in a dry run first, so that a refusal leaves nothing half done."""
        steps = await plan(self._client, manifests, force=force)
        outdated = await self._outdated(manifests)
        await carry_out(self._client, manifests, steps, force=force)
        return (*steps, *await self._remove(outdated))

    async def uninstall(
        self, *, purge: bool = False, patience: Duration = ESTABLISHED
    ) -> tuple[PlannedChange, ...]:
        """Uninstalls the operator. Servers, homes and their definitions stay unless `purge`, which needs zero servers.

        The admission policies stay as long as there are users, because they restrict the users' roles.
        """
        if purge:
            await self._check_unused()
        found = await self.standing(purge=purge)
        steps = await self._remove(found)
        with anyio.move_on_after(patience.seconds) as waiting:
            for kind, key in found:
                await until(self._client, kind, key, lambda thing: thing is None)
        if waiting.cancelled_caught:
            raise Deadline(
                "devservers.not_removed",
                f"Something of the installation was still there after {patience}.",
                hint="Run it again; kubectl get namespace devservers-system -o yaml says what it waits for.",
            )
        return steps

    async def standing(self, *, purge: bool = False) -> list[tuple[Kind[KubeObject], ObjectKey]]:
        """Objects that an uninstallation would remove, in their order."""
        kept: set[str] = set() if purge else {*KEPT}
        kept |= GUARDS if await self.users() else set()
        kinds = [kind for kind in reversed(KINDS) if kind.name not in kept]
        return [(kind, key) for kind in kinds for key in await self._ours(kind)]

    async def users(self) -> list[str]:
        """Users whose namespaces exist. An uninstallation never removes these."""
        spaces = await self._client.list(NAMESPACE, select=Selector(labels=USER_LABEL))
        return sorted(one.meta.labels[USER_LABEL] for one in spaces.items)

    async def wait(
        self,
        key: ObjectKey,
        patience: Duration,
        kind: Kind[Deployment] | Kind[StatefulSet] = DEPLOYMENT,
    ) -> None:
        await until_rolled_out(self._client, kind, key, patience)

    async def _outdated(self, manifests: Sequence[Manifest]) -> list[tuple[Kind[KubeObject], ObjectKey]]:
        """Objects of an earlier installation that this one does not have."""
        current = {(kind_of(one).name, key_of(one)) for one in manifests}
        return [
            (kind, key)
            for kind in reversed(KINDS)
            if kind.name not in _NEVER_PRUNED
            for key in await self._ours(kind)
            if (kind.name, key) not in current
        ]

    async def _ours(self, kind: Kind[KubeObject]) -> list[ObjectKey]:
        try:
            found = await self._client.list(kind, select=Selector(labels=PART_OF))
        except UnknownKind:
            return []
        return sorted(one.meta.key for one in found.items)

    async def _remove(
        self, things: Iterable[tuple[Kind[KubeObject], ObjectKey]]
    ) -> tuple[PlannedChange, ...]:
        steps: list[PlannedChange] = []
        for kind, key in things:
            try:
                await self._client.delete(kind, key.name, key.namespace)
            except NotFound:
                continue
            steps.append(_removed(kind, key))
        return tuple(steps)

    async def _check_unused(self) -> None:
        try:
            servers = (await self._client.list(DEVSERVERS)).items
        except UnknownKind:
            return
        if servers:
            some = ", ".join(str(one.meta.key) for one in servers[:3])
            raise Conflict(
                "devservers.in_use",
                f"There are {len(servers)} servers, and they would go with their definition: {some}.",
                hint="Delete them first, or leave --purge out: then they stay.",
            )


async def carry_out(
    client: Client, manifests: Sequence[Manifest], steps: Sequence[PlannedChange], *, force: bool
) -> None:
    """Does what was planned, one after the other; a kind is waited for before the next comes."""
    for manifest, step in zip(manifests, steps, strict=True):
        if step.outcome in _WRITTEN:
            await client.apply(kind_of(manifest), manifest, MANAGER, force=force)
        if step.kind == DEFINITION.name:
            await _established(client, step.name)


async def _established(client: Client, name: str) -> None:
    with anyio.move_on_after(ESTABLISHED.seconds):
        await until(client, DEFINITION, ObjectKey("", name), _is_established)
        return
    raise Deadline(
        "devservers.not_established",
        f"The cluster did not take up the kind {name} within {ESTABLISHED}.",
        hint=f"Read its conditions: kubectl describe crd {name}.",
    )


def _removed(kind: Kind[KubeObject], key: ObjectKey) -> PlannedChange:
    return PlannedChange(kind.name, key.name, key.namespace, ChangeType.REMOVED)


def _is_established(definition: CustomResourceDefinition | None) -> bool:
    found = condition(definition.status.conditions, "Established") if definition else None
    return found is not None and found.holds
