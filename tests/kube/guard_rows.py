"""What users and a stolen account of the operator might try: the request, and the words of the refusal."""

from collections.abc import Callable
from typing import Any

from neorion.keel.kube import Kind, KubeObject
from neorion.keel.kube.core import CLAIM, DEPLOYMENT, POD, SECRET, SERVICE

Manifest = dict[str, Any]
Row = tuple[Kind[Any], Callable[[str], Manifest], str]

SERVER = "devservers.io/server"
_IMAGE = {"name": "main", "image": "busybox"}
OWNER = {
    "apiVersion": "devservers.io/v1",
    "kind": "DevServer",
    "name": "box",
    "uid": "00000000-0000-0000-0000-000000000001",
    "controller": True,
}


def account(namespace: str, name: str) -> tuple[str, list[str]]:
    groups = ["system:serviceaccounts", f"system:serviceaccounts:{namespace}", "system:authenticated"]
    return f"system:serviceaccount:{namespace}:{name}", groups


def thing(namespace: str, body: Manifest, **meta: Any) -> Manifest:
    return {"metadata": {"name": "attack", "namespace": namespace, **meta}, **body}


def pod(container: Manifest | None = None, **spec: Any) -> Callable[[str], Manifest]:
    whole = {"containers": [{**_IMAGE, **(container or {})}], **spec}
    return lambda namespace: thing(namespace, {"spec": whole})


def marked_pod(namespace: str) -> Manifest:
    return thing(namespace, {"spec": {"containers": [_IMAGE]}}, labels={SERVER: "box"})


def deployment(labels: Manifest, **spec: Any) -> Callable[[str], Manifest]:
    labels = {"app": "attack", **labels}
    whole = {
        "replicas": 0,
        "selector": {"matchLabels": {"app": "attack"}},
        "template": {"metadata": {"labels": labels}, "spec": {"containers": [_IMAGE], **spec}},
    }
    return lambda namespace: thing(namespace, {"spec": whole})


def lasting_deployment(namespace: str) -> Manifest:
    body = deployment({})(namespace)
    body["spec"]["template"]["metadata"]["finalizers"] = _FOR_EVER
    return body


def stateful(spec: Manifest, **meta: Any) -> Callable[[str], Manifest]:
    """With a template of claims."""
    labels = {"app": "attack"}
    whole = {
        "serviceName": "attack",
        "selector": {"matchLabels": labels},
        "template": {"metadata": {"labels": labels}, "spec": {"containers": [_IMAGE]}},
        "volumeClaimTemplates": [{"metadata": {"name": "data", **meta}, "spec": spec}],
    }
    return lambda namespace: thing(namespace, {"spec": whole})


def claim(annotations: Manifest | None = None, **spec: Any) -> Callable[[str], Manifest]:
    whole = {**_ASKED, **spec}
    return lambda namespace: thing(namespace, {"spec": whole}, annotations=annotations or {})


def service(owner: Manifest | None = None, **spec: Any) -> Callable[[str], Manifest]:
    owners = [owner] if owner else []
    whole = {"ports": [{"port": 80}], **spec}
    return lambda namespace: thing(namespace, {"spec": whole}, ownerReferences=owners)


def token_secret(namespace: str) -> Manifest:
    account = {"kubernetes.io/service-account.name": "default"}
    return thing(namespace, {"type": "kubernetes.io/service-account-token"}, annotations=account)


def server(owner: str = "", **meta: Any) -> Callable[[str], Manifest]:
    spec = {"flavor": "cpu-small"} | ({"owner": owner} if owner else {})
    return lambda namespace: thing(namespace, {"spec": spec}, **meta)


def share(**source: Any) -> Callable[[str], Manifest]:
    """A pod that names what its node is to mount for it."""
    return pod(volumes=[{"name": "share", **source}])


_FOR_EVER = ["example.com/for-ever"]
_ASKED = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
_STATEFUL = Kind(KubeObject, "StatefulSet", "statefulsets", "apps")
_NO_SHARE = "pods mount claims, not the shares and disks behind them"
_HOST_PATH = [{"name": "host", "hostPath": {"path": "/"}}]
_SERVERS = Kind(KubeObject, "DevServer", "devservers", "devservers.io")
_SECURITY = 'violates PodSecurity "baseline:latest"'

# Each is refused in a user's namespace, and goes through in one that lacks only the label of users.
USERS: dict[str, Row] = {
    "a privileged pod": (POD, pod({"securityContext": {"privileged": True}}), _SECURITY),
    "a pod with a folder of its node": (POD, pod(volumes=_HOST_PATH), _SECURITY),
    "a pod in the network of its node": (POD, pod(hostNetwork=True), _SECURITY),
    "a pod with a port of its node": (
        POD,
        pod({"ports": [{"containerPort": 80, "hostPort": 80}]}),
        _SECURITY,
    ),
    "a pod on a chosen node": (POD, pod(nodeName="control-plane"), "the scheduler chooses the node"),
    "a pod that tolerates everything": (
        POD,
        pod(tolerations=[{"operator": "Exists"}]),
        "pods may only tolerate node.kubernetes.io/not-ready",
    ),
    "a pod on the control plane": (
        POD,
        pod(tolerations=[{"key": "node-role.kubernetes.io/control-plane", "operator": "Exists"}]),
        "pods may only tolerate",
    ),
    "a pod that pushes others aside": (
        POD,
        pod(priorityClassName="system-node-critical"),
        "system priorities belong to the cluster's own pods",
    ),
    "a pod with the user's account": (
        POD,
        pod(serviceAccountName="user-ann"),
        "pods run as the account default",
    ),
    "a pod with everybody's share": (
        POD,
        share(nfs={"server": "fs-0123456789.efs.example.com", "path": "/"}),
        _NO_SHARE,
    ),
    "a pod with somebody's disk": (
        POD,
        share(awsElasticBlockStore={"volumeID": "vol-0123456789"}),
        _NO_SHARE,
    ),
    "a pod with a share by a driver": (
        POD,
        share(csi={"driver": "nfs.csi.k8s.io", "volumeAttributes": {"server": "10.0.0.1", "share": "/"}}),
        _NO_SHARE,
    ),
    "a pod that plays a server's": (POD, marked_pod, "is the operator's; change the DevServer instead"),
    "a GPU that nobody counts": (
        POD,
        pod({"resources": {"limits": {"habana.ai/gaudi": "1"}}}),
        "does not count habana.ai/gaudi yet",
    ),
    "a deployment whose pods play a server's": (
        DEPLOYMENT,
        deployment({SERVER: "box"}),
        "leave it out of the template",
    ),
    "a server in another's name": (
        _SERVERS,
        server("bob@example.com"),
        "spec.owner is bob@example.com, and servers here are those of ann; leave it out, or name yourself",
    ),
    "a token that never ends": (SECRET, token_secret, "tokens of accounts are not kept in Secrets"),
    "a claim to a volume that is there": (
        CLAIM,
        claim(volumeName="home-of-bob"),
        "leave spec.volumeName out",
    ),
    "a claim to any volume that is there": (
        CLAIM,
        claim(storageClassName=""),
        "an empty storageClassName asks for a volume that is there already",
    ),
    "a claim to one, the old way": (
        CLAIM,
        claim({"volume.beta.kubernetes.io/storage-class": ""}),
        "not in an annotation",
    ),
    "a claim to one of a kind": (
        CLAIM,
        claim(selector={"matchLabels": {"of": "bob"}}),
        "leave spec.selector out",
    ),
    "a port on every node": (SERVICE, service(type="NodePort"), "services are of type ClusterIP"),
    "a load balancer": (SERVICE, service(type="LoadBalancer"), "services are of type ClusterIP"),
    "a name for something outside": (
        SERVICE,
        service(type="ExternalName", externalName="metadata.internal"),
        "services are of type ClusterIP",
    ),
    "an address of somebody else": (SERVICE, service(externalIPs=["10.0.0.1"]), "leave spec.externalIPs out"),
    "a service that plays a server's": (
        SERVICE,
        service(OWNER),
        "only the operator makes objects that belong to a DevServer",
    ),
    "a server that cannot be deleted": (
        _SERVERS,
        server(finalizers=_FOR_EVER),
        "users add no finalizers",
    ),
    "a pod that plays one of a queue which is not there": (
        POD,
        lambda namespace: thing(
            namespace,
            {"spec": {"containers": [_IMAGE]}},
            finalizers=["kueue.x-k8s.io/managed"],
            labels={"kueue.x-k8s.io/managed": "true"},
        ),
        "users add no finalizers",
    ),
    "a secret that cannot be deleted": (
        SECRET,
        lambda namespace: thing(namespace, {}, finalizers=_FOR_EVER),
        "users add no finalizers",
    ),
    "a deployment whose pods cannot be deleted": (
        DEPLOYMENT,
        lasting_deployment,
        "users add no finalizers, in templates neither",
    ),
    "a stateful set whose claims cannot be deleted": (
        _STATEFUL,
        stateful(_ASKED, finalizers=_FOR_EVER),
        "users add no finalizers, in templates neither",
    ),
}

# On servers that know how to fill a claim from another namespace; the others drop what asks for it.
CLONE = claim(
    storageClassName="none-such",
    dataSourceRef={"kind": "PersistentVolumeClaim", "name": "box-home", "namespace": "dev-bob"},
)

_FOREIGN = {**_ASKED, "storageClassName": "none-such", "volumeName": "home-of-bob"}

# What makes the cluster's own controllers write a claim in a user's name, and what that claim is called.
TEMPLATES: dict[str, tuple[Kind[Any], Callable[[str], Manifest], str]] = {
    "a volume of a pod": (
        POD,
        pod(volumes=[{"name": "data", "ephemeral": {"volumeClaimTemplate": {"spec": _FOREIGN}}}]),
        "attack-data",
    ),
    "a template of a StatefulSet": (
        _STATEFUL,
        stateful(_FOREIGN),
        "data-attack-0",
    ),
}

# Each is refused to the operator's account, and goes through for another one with the same rights.
OPERATOR: dict[str, Row] = {
    "a deployment of its own": (
        DEPLOYMENT,
        deployment({}),
        "the operator writes only what belongs to a DevServer",
    ),
    "a service of its own": (SERVICE, service(), "the operator writes only what belongs to a DevServer"),
    "a secret of its own": (
        SECRET,
        lambda namespace: thing(namespace, {}),
        "the operator writes only what belongs to a DevServer",
    ),
    "a volume that is no home": (CLAIM, claim(), "the operator writes only what belongs to a DevServer"),
}

# What neither a user nor the operator may, wherever: verb, group, resource, subresource.
NOBODY: tuple[tuple[str, str, str, str], ...] = (
    ("create", "", "namespaces", ""),
    ("patch", "", "namespaces", ""),
    ("delete", "", "namespaces", ""),
    ("create", "", "serviceaccounts", ""),
    ("create", "", "serviceaccounts", "token"),
    ("impersonate", "", "users", ""),
    ("impersonate", "", "groups", ""),
    ("impersonate", "", "serviceaccounts", ""),
    ("create", "rbac.authorization.k8s.io", "roles", ""),
    ("escalate", "rbac.authorization.k8s.io", "roles", ""),
    ("create", "rbac.authorization.k8s.io", "rolebindings", ""),
    ("bind", "rbac.authorization.k8s.io", "clusterroles", ""),
    ("create", "rbac.authorization.k8s.io", "clusterrolebindings", ""),
    ("get", "", "nodes", "proxy"),
    ("patch", "", "nodes", ""),
    ("create", "", "persistentvolumes", ""),
    ("patch", "", "resourcequotas", ""),
    ("patch", "", "limitranges", ""),
    ("patch", "networking.k8s.io", "networkpolicies", ""),
    ("create", "networking.k8s.io", "ingresses", ""),
    ("create", "", "endpoints", ""),
    ("create", "discovery.k8s.io", "endpointslices", ""),
    ("patch", "", "pods", "ephemeralcontainers"),
    ("create", "", "pods", "binding"),
    ("get", "", "pods", "exec"),
    ("create", "", "pods", "exec"),
    ("patch", "", "pods", ""),
    ("create", "apps", "daemonsets", ""),
    ("create", "batch", "cronjobs", ""),
    ("create", "certificates.k8s.io", "certificatesigningrequests", ""),
    ("approve", "certificates.k8s.io", "signers", ""),
    ("create", "admissionregistration.k8s.io", "mutatingwebhookconfigurations", ""),
    ("patch", "admissionregistration.k8s.io", "validatingadmissionpolicybindings", ""),
    ("create", "apiextensions.k8s.io", "customresourcedefinitions", ""),
    ("create", "apiregistration.k8s.io", "apiservices", ""),
    ("create", "storage.k8s.io", "storageclasses", ""),
    ("create", "scheduling.k8s.io", "priorityclasses", ""),
    ("patch", "devservers.io", "devserverflavors", ""),
    ("delete", "devservers.io", "devserverflavors", ""),
    ("get", "", "secrets", ""),
    ("list", "", "secrets", ""),
)
