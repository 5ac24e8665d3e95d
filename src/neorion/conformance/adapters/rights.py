"""The rights that a run needs and does not have."""

from collections.abc import Iterable

import anyio

from neorion.conformance.adapters.kinds import kind
from neorion.conformance.adapters.recording import RecordingApi
from neorion.keel.base import Denied

_REVIEW = kind(
    "SelfSubjectAccessReview", "selfsubjectaccessreviews", "authorization.k8s.io/v1", namespaced=False
)


async def missing_rights(api: RecordingApi, rights: Iterable[str]) -> list[str]:
    """Those of the rights that the kubeconfig's user does not have, in order.

    Rights to resources that the cluster does not serve are not needed: checks skip what is not installed.
    """
    wanted = await _of_served_resources(api, list(dict.fromkeys(rights)))
    missing: set[str] = set()

    async def review(right: str) -> None:
        verb, _, resource = right.partition(" ")
        plural, _, group = resource.partition(".")
        plural, _, subresource = plural.partition("/")
        attributes = {"verb": verb, "resource": plural, "group": group, "subresource": subresource}
        answer = await api.create(_REVIEW, {"metadata": {}, "spec": {"resourceAttributes": attributes}})
        if not answer.get("status", {}).get("allowed"):
            missing.add(right)

    try:
        async with anyio.create_task_group() as tasks:
            for right in wanted:
                tasks.start_soon(review, right)
    except BaseExceptionGroup as group:
        raise next(iter(group.exceptions)) from None
    return [right for right in wanted if right in missing]


async def _of_served_resources(api: RecordingApi, rights: list[str]) -> list[str]:
    groups = {group for right in rights if (group := _resource(right)[1])}
    listed = (await api.read("/apis")).get("groups", ())
    versions = {each["name"]: [one["groupVersion"] for one in each["versions"]] for each in listed}
    served: set[tuple[str, str]] = set()
    for group in sorted(groups & versions.keys()):
        for version in versions[group]:
            found = (await api.read(f"/apis/{version}")).get("resources", ())
            served |= {(each["name"].partition("/")[0], group) for each in found}
    return [right for right in rights if not _resource(right)[1] or _resource(right) in served]


def _resource(right: str) -> tuple[str, str]:
    """The plural and the group of the resource that a right is about."""
    plural, _, group = right.partition(" ")[2].partition(".")
    return plural.partition("/")[0], group


async def require_rights(api: RecordingApi, rights: Iterable[str]) -> None:
    missing = await missing_rights(api, rights)
    if missing:
        raise Denied(
            "conformance.rights",
            f"The kubeconfig's user lacks {len(missing)} rights: {', '.join(missing)}.",
            hint="Grant them, or leave out checks with --only: neorion conformance run --plan -o wide lists the rights.",
        )
