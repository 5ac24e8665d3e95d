"""Refusals of clusters and of CoreWeave, as the families that the autoscaler knows."""

from neorion.iris.model import ScaleFailureKind
from neorion.iris.ports import QuotaNotSet
from neorion.keel.base import Denied, Error, Invalid, NoCapacity, NotFound, QuotaExceeded


class QuotaExhaustedError(QuotaExceeded):
    """The quota of a scale group is used up: in CoreWeave's zone, or in the namespace."""

    def __init__(self, group: str, words: str) -> None:
        super().__init__(
            "iris.quota",
            f"There is no quota left for {group}: {words}",
            hint="Ask for more quota, or end a slice.",
            scope=group,
        )


def platform_error(group: str, error: Error) -> Error:
    """The meaning of a refusal for the autoscaler. Errors that pass by themselves stay as they are."""
    words = error.sentence
    told = error
    match error:
        case QuotaExceeded() if error.code == "provider.quota_not_set":
            told = QuotaNotSet(
                "iris.quota_not_set",
                f"There is no quota for {group}: {words}",
                hint="Ask CoreWeave for quota of this instance type.",
                scope=group,
            )
        case QuotaExceeded():
            told = QuotaExhaustedError(group, words)
        case Denied() | Invalid() if "quota" in words.lower():
            told = QuotaExhaustedError(group, words)
        case NoCapacity():
            told = NoCapacity(
                "iris.no_capacity",
                f"There is no machine left for {group}: {words}",
                hint="Another scale group may have some; otherwise wait.",
                scope=group,
            )
        case Denied() if "PodSecurity" in words:
            told = Denied(
                "iris.pod_security",
                f"The namespace does not admit the worker Pods of {group}: {words}",
                hint="Label the namespace pod-security.kubernetes.io/enforce: privileged, or set host_network: false.",
            )
        case Denied():
            told = Denied(
                "iris.platform_denied",
                f"The cluster refuses a slice of {group}: {words}",
                hint="Give the controller's service account the rights in rbac.yaml.",
            )
        case NotFound():
            told = NotFound(
                "iris.platform_missing",
                f"The cluster cannot make a slice of {group}: {words}",
                hint="Create the namespace; on CoreWeave, check that the cluster has NodePools.",
            )
        case Invalid():
            told = Invalid(
                "iris.platform_refused",
                f"The cluster refuses a slice of {group}: {words}",
                hint="Correct the scale group in the cluster file.",
            )
        case _:
            pass
    return told


def trouble_of(error: Error) -> ScaleFailureKind:
    if isinstance(error, QuotaNotSet):
        return ScaleFailureKind.NO_QUOTA
    if isinstance(error, QuotaExceeded):
        return ScaleFailureKind.QUOTA
    return ScaleFailureKind.NO_CAPACITY if isinstance(error, NoCapacity) else ScaleFailureKind.FAILED
