"""The question whether one may do something, which every user of a cluster may ask."""

from neorion.keel.kube.kinds import Kind
from neorion.keel.kube.objects import KubeObject, KubeStruct


class ResourceAttributes(KubeStruct, frozen=True):
    """One right."""

    verb: str = ""
    resource: str = ""
    group: str = ""
    subresource: str = ""
    namespace: str = ""


class SelfSubjectAccessReviewSpec(KubeStruct, frozen=True):
    """The right in question."""

    resource_attributes: ResourceAttributes = ResourceAttributes()


class SubjectAccessReviewStatus(KubeStruct, frozen=True):
    """The answer."""

    allowed: bool = False


class SelfSubjectAccessReview(KubeObject, frozen=True):
    """The question and its answer."""

    spec: SelfSubjectAccessReviewSpec = SelfSubjectAccessReviewSpec()
    status: SubjectAccessReviewStatus = SubjectAccessReviewStatus()


ACCESS_REVIEW = Kind(
    SelfSubjectAccessReview,
    "SelfSubjectAccessReview",
    "selfsubjectaccessreviews",
    "authorization.k8s.io",
    namespaced=False,
)
