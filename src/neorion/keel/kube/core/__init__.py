"""Kinds that every cluster has, with the fields that the systems here read.

No kind of one system alone: those are defined, in one line each, where they are used. No behaviour. Names load when first used: a command line needs few of them.
"""

from typing import TYPE_CHECKING

from neorion.keel.base import lazy_exports

if TYPE_CHECKING:
    from neorion.keel.kube.core.authorization import (
        ACCESS_REVIEW,
        ResourceAttributes,
        SelfSubjectAccessReview,
        SelfSubjectAccessReviewSpec,
    )
    from neorion.keel.kube.core.coordination import (
        DEFINITION,
        EVENT,
        LEASE,
        CustomResourceDefinition,
        Event,
        EventSeries,
        Lease,
        LeaseSpec,
        ObjectReference,
    )
    from neorion.keel.kube.core.core_v1 import (
        CLAIM,
        CONFIG_MAP,
        NAMESPACE,
        RESOURCE_QUOTA,
        SECRET,
        SERVICE,
        SERVICE_ACCOUNT,
        ConfigMap,
        Namespace,
        PersistentVolumeClaim,
        ResourceQuota,
        Secret,
        Service,
        ServiceAccount,
    )
    from neorion.keel.kube.core.nodes import NODE, Node, NodeSpec, NodeStatus, Taint
    from neorion.keel.kube.core.pods import POD, Container, ContainerStatus, Pod, PodSpec, PodStatus
    from neorion.keel.kube.core.workloads import (
        DAEMON_SET,
        DEPLOYMENT,
        JOB,
        STATEFUL_SET,
        DaemonSet,
        Deployment,
        Job,
        StatefulSet,
    )

__all__ = [
    "ACCESS_REVIEW",
    "CLAIM",
    "CONFIG_MAP",
    "DAEMON_SET",
    "DEFINITION",
    "DEPLOYMENT",
    "EVENT",
    "JOB",
    "LEASE",
    "NAMESPACE",
    "NODE",
    "POD",
    "RESOURCE_QUOTA",
    "SECRET",
    "SERVICE",
    "SERVICE_ACCOUNT",
    "STATEFUL_SET",
    "ConfigMap",
    "Container",
    "ContainerStatus",
    "CustomResourceDefinition",
    "DaemonSet",
    "Deployment",
    "Event",
    "EventSeries",
    "Job",
    "Lease",
    "LeaseSpec",
    "Namespace",
    "Node",
    "NodeSpec",
    "NodeStatus",
    "ObjectReference",
    "PersistentVolumeClaim",
    "Pod",
    "PodSpec",
    "PodStatus",
    "ResourceAttributes",
    "ResourceQuota",
    "Secret",
    "SelfSubjectAccessReview",
    "SelfSubjectAccessReviewSpec",
    "Service",
    "ServiceAccount",
    "StatefulSet",
    "Taint",
]

__getattr__ = lazy_exports(
    __name__,
    {
        "authorization": (
            "ACCESS_REVIEW",
            "ResourceAttributes",
            "SelfSubjectAccessReview",
            "SelfSubjectAccessReviewSpec",
        ),
        "core_v1": (
            "CLAIM",
            "CONFIG_MAP",
            "NAMESPACE",
            "RESOURCE_QUOTA",
            "SECRET",
            "SERVICE",
            "SERVICE_ACCOUNT",
            "PersistentVolumeClaim",
            "ConfigMap",
            "Namespace",
            "ResourceQuota",
            "Secret",
            "Service",
            "ServiceAccount",
        ),
        "coordination": (
            "DEFINITION",
            "EVENT",
            "LEASE",
            "CustomResourceDefinition",
            "Event",
            "Lease",
            "LeaseSpec",
            "ObjectReference",
            "EventSeries",
        ),
        "nodes": ("NODE", "Node", "NodeSpec", "NodeStatus", "Taint"),
        "pods": ("POD", "Container", "ContainerStatus", "Pod", "PodSpec", "PodStatus"),
        "workloads": (
            "DAEMON_SET",
            "DEPLOYMENT",
            "JOB",
            "STATEFUL_SET",
            "DaemonSet",
            "Deployment",
            "Job",
            "StatefulSet",
        ),
    },
)
