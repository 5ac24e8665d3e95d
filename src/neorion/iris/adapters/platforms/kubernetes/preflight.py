"""Checks a cluster before a controller begins: a right that is missing would show as a slice that never comes."""

from collections.abc import Iterator

import anyio

from neorion.capacity.coreweave import NODE_POOL
from neorion.iris.adapters.platforms.kubernetes.settings import KubernetesSettings
from neorion.keel.base import Denied, Invalid
from neorion.keel.kube import KubeApi, Selector, UnknownKind
from neorion.keel.kube.core import (
    ACCESS_REVIEW,
    ResourceAttributes,
    SelfSubjectAccessReview,
    SelfSubjectAccessReviewSpec,
)

_READ = ("get", "list", "watch")
# Of Pods and Secrets in the namespace of the installation.
_NAMESPACED = {"pods": (*_READ, "create", "delete"), "secrets": (*_READ, "create", "patch", "delete")}


async def check_cluster(api: KubeApi, settings: KubernetesSettings) -> None:
    """Raises `Denied` with all rights that are missing, and `Invalid` where the cluster has no NodePools."""
    missing: set[ResourceAttributes] = set()
    needed = list(_needed(settings))

    async def ask(right: ResourceAttributes) -> None:
        review = SelfSubjectAccessReview(spec=SelfSubjectAccessReviewSpec(right))
        if not (await api.create(ACCESS_REVIEW, review)).status.allowed:
            missing.add(right)

    async with anyio.create_task_group() as group:
        for right in needed:
            group.start_soon(ask, right)
    if missing:
        words = ", ".join(f"{right.verb} {right.resource}" for right in needed if right in missing)
        raise Denied(
            "iris.platform_rights",
            f"The controller may not do this in the cluster: {words}.",
            hint="Apply the Role and the ClusterRole of this version: iris cluster up --config FILE.",
        )
    if _buys(settings):
        await _check_node_pools(api)


async def _check_node_pools(api: KubeApi) -> None:
    try:
        await api.list(NODE_POOL, select=Selector(labels="iris-managed=true"))
    except UnknownKind:
        raise Invalid(
            "iris.no_node_pools",
            "This cluster has no NodePools, so it is not a cluster of CoreWeave.",
            hint='Write "kubernetes" instead of "coreweave" in the cluster file, or choose another context.',
        ) from None


def _needed(settings: KubernetesSettings) -> Iterator[ResourceAttributes]:
    for resource, verbs in _NAMESPACED.items():
        for verb in verbs:
            yield ResourceAttributes(verb, resource, namespace=settings.namespace)
    if not _buys(settings):
        return
    shared = ("patch",) if any(one.pool and one.pool.shared for one in settings.groups.values()) else ()
    for verb in (*_READ, "create", "delete", *shared):
        yield ResourceAttributes(verb, "nodepools", NODE_POOL.group)
    for verb in (*_READ, *shared):
        yield ResourceAttributes(verb, "nodes")


def _buys(settings: KubernetesSettings) -> bool:
    return any(one.pool for one in settings.groups.values())
