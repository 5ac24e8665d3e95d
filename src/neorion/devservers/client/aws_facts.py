"""Reads from a cluster what `check_aws` judges."""

from collections.abc import Iterable, Mapping
from typing import Any, Final, cast

from neorion.devservers.decide.aws_installation import (
    FAMILY,
    INSTANCE_TYPE,
    AwsFacts,
    NodePoolOffer,
    flavor_types,
)
from neorion.devservers.model.flavor import is_gpu
from neorion.devservers.model.kube_types import DEVSERVERFLAVORS
from neorion.devservers.model.tenancy import SYSTEM_NAMESPACE
from neorion.keel.base import NotFound
from neorion.keel.kube import Kind, KubeObject, UnknownKind
from neorion.keel.kube.client import Client
from neorion.keel.kube.core import DAEMON_SET, NODE, SERVICE, SERVICE_ACCOUNT

Json = Mapping[str, Any]

_STORAGE = "storage.k8s.io"
_CSI_DRIVERS: Final = Kind(KubeObject, "CSIDriver", "csidrivers", _STORAGE, namespaced=False)
_STORAGE_CLASSES: Final = Kind(KubeObject, "StorageClass", "storageclasses", _STORAGE, namespaced=False)
_NODE_POOLS: Final = Kind(KubeObject, "NodePool", "nodepools", "karpenter.sh", namespaced=False)
_DEFAULT_CLASS: Final = "storageclass.kubernetes.io/is-default-class"
_ROLE: Final = "eks.amazonaws.com/role-arn"
_BASTION, _METRICS = "devservers-bastion", "devservers-metrics"


async def read_aws_facts(client: Client) -> AwsFacts:
    """Needs the rights of an administrator: nodes, drivers and the system's namespace are read."""
    classes = await _all(client, _STORAGE_CLASSES)
    nodes = await _all(client, NODE)
    flavors = (await client.list(DEVSERVERFLAVORS)).items
    plugins = [_name(one) for one in await _all(client, DAEMON_SET)]
    types = flavor_types((one.meta.name, one.spec) for one in flavors)
    bastion = await _one(client, SERVICE, _BASTION)
    account = await _one(client, SERVICE_ACCOUNT, _METRICS)
    return AwsFacts(
        drivers=frozenset(_name(one) for one in await _all(client, _CSI_DRIVERS)),
        storage_classes={_name(one): str(one.get("provisioner", "")) for one in classes},
        default_class=next((_name(one) for one in classes if _marks(one).get(_DEFAULT_CLASS) == "true"), ""),
        flavors=types,
        node_types=frozenset(_labels(one).get(INSTANCE_TYPE, "") for one in nodes),
        node_pools=await _node_pools(client),
        gpu_flavors=frozenset(
            one.meta.name
            for one in flavors
            if one.meta.name in types and any(map(is_gpu, one.spec.resources.requests))
        ),
        device_plugin=any("nvidia" in name and "device-plugin" in name for name in plugins)
        or any(is_gpu(name) for one in nodes for name in one.get("status", {}).get("allocatable", {})),
        bastion_address=None if bastion is None else _address(bastion),
        bastion_type="" if bastion is None else str(bastion["spec"].get("type", "")),
        metrics_role="" if account is None else _marks(account).get(_ROLE, ""),
    )


async def _node_pools(client: Client) -> tuple[NodePoolOffer, ...] | None:
    try:
        pools = await _all(client, _NODE_POOLS)
    except UnknownKind:
        return None
    return tuple(_offer(one["spec"]["template"]["spec"].get("requirements", ())) for one in pools)


def _offer(requirements: Iterable[Json]) -> NodePoolOffer:
    """Other requirements and other operators than `In` narrow the choice further, and are not judged."""
    allowed = {one["key"]: frozenset(one["values"]) for one in requirements if one["operator"] == "In"}
    return NodePoolOffer(allowed.get(INSTANCE_TYPE, frozenset()), allowed.get(FAMILY, frozenset()))


async def _all(client: Client, kind: Kind[Any]) -> list[dict[str, Any]]:
    return cast("list[dict[str, Any]]", (await client.list(kind.raw)).items)


async def _one(client: Client, kind: Kind[Any], name: str) -> dict[str, Any] | None:
    try:
        return cast("dict[str, Any]", await client.get(kind.raw, name, SYSTEM_NAMESPACE))
    except NotFound:
        return None


def _name(one: Json) -> str:
    return one["metadata"]["name"]


def _marks(one: Json) -> dict[str, str]:
    return one["metadata"].get("annotations") or {}


def _labels(one: Json) -> dict[str, str]:
    return one["metadata"].get("labels") or {}


def _address(service: Json) -> str:
    for one in service.get("status", {}).get("loadBalancer", {}).get("ingress") or ():
        return one.get("hostname") or one.get("ip") or ""
    return ""
