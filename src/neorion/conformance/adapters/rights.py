"""Which of the rights that a run needs are missing."""

from collections.abc import Iterable

import anyio

from neorion.conformance.adapters.kinds import kind
from neorion.conformance.adapters.recording import RecordingApi
from neorion.keel.base import Denied

_REVIEW = kind(
    "SelfSubjectAccessReview", "selfsubjectaccessreviews", "authorization.k8s.io/v1", namespaced=False
)


async def missing_rights(api: RecordingApi, rights: Iterable[str]) -> list[str]:
    """Those of the rights that the kubeconfig's user does not have, in order."""
    wanted = list(dict.fromkeys(rights))
    missing: set[str] = set()

    async def review(right: str) -> None:
        verb, _, resource = right.partition(" ")
        plural, _, group = resource.partition(".")
        plural, _, subresource = plural.partition("/")
        attributes = {"verb": verb, "resource": plural, "group": group, "subresource": subresource}
        answer = await api.create(_REVIEW, {"metadata": {}, "spec": {"resourceAttributes": attributes}})
        if not answer.get("status", {}).get("allowed"):
            missing.add(right)

    async with anyio.create_task_group() as tasks:
        for right in wanted:
            tasks.start_soon(review, right)
    return [right for right in wanted if right in missing]


async def require_rights(api: RecordingApi, rights: Iterable[str]) -> None:
    missing = await missing_rights(api, rights)
    if missing:
        raise Denied(
            "conformance.rights",
            f"The kubeconfig's user lacks {len(missing)} rights: {', '.join(missing)}.",
            hint="Grant them (neorion conformance run --plan lists all), or leave out checks with --only.",
        )
