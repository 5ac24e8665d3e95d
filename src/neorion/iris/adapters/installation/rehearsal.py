"""Tries an installation with dry-run writes, so that a refusal leaves nothing half applied."""

from collections.abc import Sequence
from typing import Any, Final

from neorion.capacity.coreweave import NODE_POOL
from neorion.iris.adapters.installation.manifests import MANAGER, kind_of
from neorion.keel.base import Conflict, Denied, Error, Invalid, NotFound
from neorion.keel.kube import Kind, UnknownKind
from neorion.keel.kube.client import Client
from neorion.keel.kube.core import (
    ACCESS_REVIEW,
    CLAIM,
    NAMESPACE,
    ResourceAttributes,
    SelfSubjectAccessReview,
    SelfSubjectAccessReviewSpec,
)

# A server-side apply needs both for an object that does not exist.
_APPLY: Final = ("create", "patch")
_WORDS_MAX: Final = 300


async def rehearse(client: Client, manifests: Sequence[dict[str, Any]]) -> None:
    """Raises what the cluster would refuse. Objects of a namespace that does not exist yet are checked by rights alone."""
    namespace_exists = await _namespace_exists(client, manifests)
    rehearsal = client.rehearsing()
    for manifest in manifests:
        kind = kind_of(manifest)
        try:
            if kind.namespaced and not namespace_exists:
                await _check_rights(client, kind, manifest)
            else:
                await rehearsal.apply(kind.raw, manifest, MANAGER, force=True)
        except (Denied, Invalid, NotFound) as error:
            raise await _refusal(client, kind, manifest, error) from None


async def _namespace_exists(client: Client, manifests: Sequence[dict[str, Any]]) -> bool:
    name = next(one["metadata"]["name"] for one in manifests if one["kind"] == NAMESPACE.name)
    try:
        found = await client.get(NAMESPACE, name)
    except NotFound:
        return False
    if found.meta.deleted is not None:
        raise Conflict(
            "iris.namespace_leaving",
            f"The namespace {name} is being deleted.",
            hint="Try again when it is gone.",
        )
    return True


async def _check_rights(client: Client, kind: Kind[Any], manifest: dict[str, Any]) -> None:
    for verb in _APPLY:
        namespace = manifest["metadata"]["namespace"]
        right = ResourceAttributes(verb, kind.plural, kind.group, namespace=namespace)
        review = SelfSubjectAccessReview(spec=SelfSubjectAccessReviewSpec(right))
        if not (await client.create(ACCESS_REVIEW, review)).status.allowed:
            raise Denied("kube.denied", f"this user may not {verb} {kind.resource} in {namespace}")


async def _refusal(client: Client, kind: Kind[Any], manifest: dict[str, Any], error: Error) -> Error:
    """The error for the user, from the refusal of one object."""
    name = manifest["metadata"]["name"]
    words = error.sentence.strip().partition("\n")[0][:_WORDS_MAX].rstrip(".")
    if isinstance(error, UnknownKind) and kind is NODE_POOL:
        return Invalid(
            "iris.no_node_pools",
            "This cluster has no NodePools, so it is not a cluster of CoreWeave.",
            hint='Write "kubernetes" instead of "coreweave" in the cluster file, or choose another context.',
        )
    if isinstance(error, Denied):
        return Denied(
            "iris.install_rights",
            f"{kind.name} {name} may not be applied: {words}.",
            hint="Use a kubeconfig of an administrator, or give one the output of: iris cluster up --dry-run.",
        )
    if kind is CLAIM and (told := await _claim_refusal(client, manifest)) is not None:
        return told
    return Invalid(
        "iris.install_refused",
        f"The cluster refuses {kind.name} {name}: {words}.",
        hint="Correct the cluster file.",
    )


async def _claim_refusal(client: Client, manifest: dict[str, Any]) -> Error | None:
    """The properties of a claim are fixed when it is created."""
    meta, spec = manifest["metadata"], manifest["spec"]
    try:
        claim = await client.get(CLAIM, meta["name"], meta["namespace"])
    except NotFound:
        return None
    pairs = [("is", ", ".join(claim.spec.access_modes), ", ".join(spec["accessModes"]))]
    if "storageClassName" in spec:
        pairs.append(("has the class", claim.spec.storage_class_name or "none", spec["storageClassName"]))
    for verb, there, wanted in pairs:
        if there != wanted:
            return Conflict(
                "iris.claim_fixed",
                f"The volume claim {meta['name']} {verb} {there}, the cluster file needs {wanted}, and claims do not change.",
                hint="Keep the controller section as it was, or back the volume up and run: iris cluster down --purge.",
            )
    return None
