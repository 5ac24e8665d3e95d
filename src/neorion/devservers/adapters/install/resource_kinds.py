"""The kinds that installations and users' namespaces are made of."""

from collections.abc import Mapping
from typing import Any, Final

from neorion.devservers.model import DEV_SERVER_FLAVOR, GROUP
from neorion.keel.base import Invalid
from neorion.keel.kube import Kind, KubeObject, ObjectKey

Manifest = Mapping[str, Any]

# The label of all that belongs to the installation. Namespaces of users do not carry it.
PART_OF: Final = "app.kubernetes.io/part-of=devservers"
# Kinds of this group come with the Prometheus operator, which not every cluster has.
MONITORING: Final = "monitoring.coreos.com"
# Kinds of these groups come with Karpenter, which makes nodes in clusters on AWS.
_KARPENTER: Final = "karpenter.sh"
_KARPENTER_AWS: Final = "karpenter.k8s.aws"
# An installation goes without kinds of these groups where the cluster does not have them.
OPTIONAL: Final = frozenset({MONITORING, _KARPENTER, _KARPENTER_AWS})
_ADMISSION: Final = "admissionregistration.k8s.io"
_RBAC: Final = "rbac.authorization.k8s.io"

# In the order in which each finds what it needs: they are applied in this order, and deleted in the reverse.
KINDS: Final[tuple[Kind[KubeObject], ...]] = (
    Kind(
        KubeObject,
        "CustomResourceDefinition",
        "customresourcedefinitions",
        "apiextensions.k8s.io",
        namespaced=False,
    ),
    Kind(KubeObject, "Namespace", "namespaces", namespaced=False),
    Kind(KubeObject, "PriorityClass", "priorityclasses", "scheduling.k8s.io", namespaced=False),
    Kind(KubeObject, "StorageClass", "storageclasses", "storage.k8s.io", namespaced=False),
    # Guards before what they guard.
    Kind(
        KubeObject,
        "ValidatingAdmissionPolicy",
        "validatingadmissionpolicies",
        _ADMISSION,
        namespaced=False,
    ),
    Kind(
        KubeObject,
        "ValidatingAdmissionPolicyBinding",
        "validatingadmissionpolicybindings",
        _ADMISSION,
        namespaced=False,
    ),
    Kind(KubeObject, "ResourceQuota", "resourcequotas"),
    Kind(KubeObject, "LimitRange", "limitranges"),
    Kind(KubeObject, "NetworkPolicy", "networkpolicies", "networking.k8s.io"),
    Kind(KubeObject, "ServiceAccount", "serviceaccounts"),
    Kind(KubeObject, "ClusterRole", "clusterroles", _RBAC, namespaced=False),
    Kind(KubeObject, "ClusterRoleBinding", "clusterrolebindings", _RBAC, namespaced=False),
    Kind(KubeObject, "Role", "roles", _RBAC),
    Kind(KubeObject, "RoleBinding", "rolebindings", _RBAC),
    Kind(KubeObject, "ConfigMap", "configmaps"),
    Kind(KubeObject, "Service", "services"),
    Kind(KubeObject, "PodDisruptionBudget", "poddisruptionbudgets", "policy"),
    Kind(KubeObject, "Deployment", "deployments", "apps"),
    Kind(KubeObject, "DaemonSet", "daemonsets", "apps"),
    Kind(KubeObject, "CronJob", "cronjobs", "batch"),
    Kind(KubeObject, "EC2NodeClass", "ec2nodeclasses", _KARPENTER_AWS, namespaced=False),
    Kind(KubeObject, "NodePool", "nodepools", _KARPENTER, namespaced=False),
    Kind(KubeObject, "StatefulSet", "statefulsets", "apps"),
    Kind(KubeObject, "ServiceMonitor", "servicemonitors", MONITORING),
    Kind(KubeObject, "PrometheusRule", "prometheusrules", MONITORING),
    Kind(KubeObject, DEV_SERVER_FLAVOR.kind, DEV_SERVER_FLAVOR.plural, GROUP, namespaced=False),
)
_BY_NAME: Final = {kind.name: kind for kind in KINDS}
# What users' data hangs on: an uninstallation leaves it unless told otherwise, and an upgrade never takes it away.
# Machines go when their NodePool goes.
KEPT: Final = frozenset(
    {"CustomResourceDefinition", "StorageClass", "EC2NodeClass", "NodePool", DEV_SERVER_FLAVOR.kind}
)
# What holds users within their rights: it stays as long as there is a user.
GUARDS: Final = frozenset({"ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding"})

# Flavors and their prices are the cluster's own from the moment they are there.
MADE_ONCE: Final = frozenset({DEV_SERVER_FLAVOR.kind})


def kind_of(manifest: Manifest) -> Kind[KubeObject]:
    kind = _BY_NAME.get(manifest["kind"])
    if kind is None or kind.api_version != manifest["apiVersion"]:
        raise Invalid(
            "devservers.unknown_kind",
            f"An installation has no {manifest['kind']} of {manifest['apiVersion']}.",
            hint="Add the kind to the list, at its place in the order.",
        )
    return kind


def key_of(manifest: Manifest) -> ObjectKey:
    return kind_of(manifest).key(manifest)


def in_order(manifests: tuple[Manifest, ...]) -> tuple[Manifest, ...]:
    return tuple(sorted(manifests, key=lambda one: KINDS.index(kind_of(one))))
