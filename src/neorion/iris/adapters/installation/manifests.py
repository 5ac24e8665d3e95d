"""The objects of an installation, from its cluster file."""

import hashlib
import re
from importlib.resources import files
from string import Template
from typing import Any, Final
from urllib.parse import urlsplit

import yaml

from neorion.capacity.coreweave import NODE_POOL
from neorion.iris.adapters.cluster_file import ClusterFile
from neorion.iris.adapters.cluster_file.sections import NodePools, ServiceController
from neorion.iris.adapters.platforms.kubernetes.names import Names
from neorion.keel.base import Invalid
from neorion.keel.kube import Kind, KubeObject, Manifest
from neorion.keel.kube.core import CLAIM, CONFIG_MAP, DEPLOYMENT, NAMESPACE, SERVICE, SERVICE_ACCOUNT

DEPLOYMENT_NAME: Final = "iris-controller"
POOL_NAME: Final = "iris-controller-pool"
# The owner of the applied fields.
MANAGER: Final = "iris-cluster-up"
# The controller's home, on its volume.
HOME: Final = "/var/lib/iris"
# The Secret with the variables that the cluster file refers to.
VARIABLES: Final = "iris-controller-env"
CLUSTER_FILE: Final = "neorion.dev/cluster-file"
# A reference without a default, which would stand in the file.
_REFERENCE: Final = re.compile(r"\$\{[A-Za-z_][A-Za-z0-9_]*\}")
_RBAC: Final = "rbac.authorization.k8s.io"
_BOUGHT: Final = frozenset({"NodePool", "ClusterRole", "ClusterRoleBinding"})
# In the order in which they are applied.
_KINDS: Final[tuple[Kind[Any], ...]] = (
    NAMESPACE,
    SERVICE_ACCOUNT,
    Kind(KubeObject, "Role", "roles", _RBAC),
    Kind(KubeObject, "RoleBinding", "rolebindings", _RBAC),
    Kind(KubeObject, "ClusterRole", "clusterroles", _RBAC, namespaced=False),
    Kind(KubeObject, "ClusterRoleBinding", "clusterrolebindings", _RBAC, namespaced=False),
    CONFIG_MAP,
    NODE_POOL,
    CLAIM,
    DEPLOYMENT,
    Kind(KubeObject, "PodDisruptionBudget", "poddisruptionbudgets", "policy"),
    SERVICE,
)
_BY_NAME: Final = {kind.name: kind for kind in _KINDS}


def kind_of(manifest: Manifest) -> Kind[Any]:
    return _BY_NAME[str(manifest["kind"])]


def names_of(file: ClusterFile) -> Names:
    """Names that tell this installation from others."""
    if (cluster := file.platform.in_cluster) is None:
        raise Invalid(
            "iris.not_in_cluster",
            "The cluster file is for this machine: it has no kubernetes or coreweave section.",
            hint="Start it here: iris cluster start --local.",
        )
    return Names(file.platform.label_prefix, cluster.namespace)


def token_path(file: ClusterFile) -> str:
    """Where the controller keeps its administrator's token."""
    return f"{_state_dir(file)}/admin.token"


def manifests(file: ClusterFile, text: str) -> list[dict[str, Any]]:
    """`text` is the cluster file as it was written: the controller reads it from its ConfigMap.

    `file` was loaded without secrets: the controller finds them in its own environment.
    """
    names, service = names_of(file), file.controller.service
    cluster = file.platform.in_cluster
    if service is None or cluster is None:
        raise Invalid(
            "iris.not_in_cluster",
            "The cluster file does not say how the controller is found.",
            hint="Write service_name below controller: kubernetes or coreweave.",
        )
    if cluster.kubeconfig_path:
        raise Invalid(
            "iris.kubeconfig_path",
            "A controller inside of the cluster has no kubeconfig file.",
            hint="Leave kubeconfig_path out of the cluster file, and give --kubeconfig to the command.",
        )
    _state_dir(file)
    _check_database(file, service.replicas)
    template_text = Template(
        files("neorion.iris.adapters.installation").joinpath("manifests.yaml").read_text()
    )
    filled = template_text.substitute(
        namespace=names.namespace,
        service=service.service_name,
        port=service.port,
        image=service.docker_image,
        instance_type=service.instance_type,
    )
    found: list[dict[str, Any]] = list(yaml.safe_load_all(filled))
    coreweave = file.platform.coreweave
    buys = coreweave is not None
    for manifest in found:
        if manifest["kind"] == CONFIG_MAP.name:
            manifest["data"] = {"config.yaml": text}
        if manifest["kind"] == "ClusterRole" and coreweave and coreweave.node_pools is NodePools.PER_GROUP:
            # It changes the target of a NodePool that stays, and labels and cordons nodes.
            for rule in manifest["rules"]:
                rule["verbs"].append("patch")
        if manifest["kind"] == DEPLOYMENT.name:
            template = manifest["spec"]["template"]
            # Another cluster file is read by another Pod.
            digest = hashlib.sha256(text.encode()).hexdigest()[:16]
            template["metadata"]["annotations"] = {CLUSTER_FILE: digest}
            spec = template["spec"]
            spec["imagePullSecrets"] = [{"name": name} for name in cluster.image_pull_secrets]
            if not buys:
                del spec["nodeSelector"]
        _fit(manifest, service)
    return [manifest for manifest in found if buys or manifest["kind"] not in _BOUGHT]


def _fit(manifest: dict[str, Any], service: ServiceController) -> None:
    """Changes an object as the section of the controller says."""
    if manifest["kind"] == CLAIM.name and service.storage_class:
        manifest["spec"]["storageClassName"] = service.storage_class
    if service.replicas > 1:
        _add_standby(manifest)


def _add_standby(manifest: dict[str, Any]) -> None:
    """Changes an object of one controller into that of two: one leads, and only that one is ready."""
    spec: dict[str, Any] = manifest.get("spec", {})
    match manifest["kind"]:
        case "NodePool":
            spec["targetNodes"] = 2
        case "PersistentVolumeClaim":
            spec["accessModes"] = ["ReadWriteMany"]
        case "PodDisruptionBudget":
            spec["maxUnavailable"] = 1
            # A standby is never ready, and may always be moved.
            spec["unhealthyPodEvictionPolicy"] = "AlwaysAllow"
        case "Deployment":
            spec["replicas"] = 2
            # A new Pod becomes ready only when the leader ends, so the old ones do not wait for it.
            spec["strategy"] = {
                "type": "RollingUpdate",
                "rollingUpdate": {"maxSurge": 1, "maxUnavailable": "100%"},
            }
            pod = spec["template"]["spec"]
            pod["topologySpreadConstraints"] = [
                {
                    "maxSkew": 1,
                    "topologyKey": "kubernetes.io/hostname",
                    "whenUnsatisfiable": "ScheduleAnyway",
                    "labelSelector": {"matchLabels": {"app": DEPLOYMENT_NAME}},
                }
            ]
            pod["containers"][0]["command"].append("--standby")
        case _:
            pass


def _check_database(file: ClusterFile, replicas: int) -> None:
    """Refuses two controllers with a database for one, and a password outside of a Secret."""
    database = file.storage.database
    if replicas > 1 and database is None:
        raise Invalid(
            "iris.replicas_store",
            f"controller.replicas is {replicas}, but SQLite on a volume serves one controller.",
            hint=f"Write storage.database: ${{IRIS_DATABASE}}, with a postgresql:// address in the Secret {VARIABLES}.",
        )
    if database is not None and _is_public(database.reveal()):
        raise Invalid(
            "iris.database_in_file",
            "The cluster file holds the address of the database, and its ConfigMap is not secret.",
            hint=f"Write storage.database: ${{IRIS_DATABASE}}, and put the address into the Secret {VARIABLES}.",
        )


def _is_public(database: str) -> bool:
    """True where the address, or its password, stands in the cluster file itself."""
    rest, references = _REFERENCE.subn("", database)
    return not references or bool(urlsplit(rest).password)


def _state_dir(file: ClusterFile) -> str:
    path = file.storage.state_dir.replace("~", HOME, 1) if file.storage.state_dir[:1] == "~" else ""
    path = path or file.storage.state_dir
    if path != HOME and not path.startswith(f"{HOME}/"):
        raise Invalid(
            "iris.state_dir",
            f"storage.state_dir is {path}, which is not on the controller's volume.",
            hint=f"Write {HOME}, or leave it out.",
        )
    return path.rstrip("/")
