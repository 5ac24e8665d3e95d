from datetime import UTC, datetime

from neorion.devservers.decide import OperatorSettings
from neorion.devservers.model import DevServerFlavorSpec, DevServerSpec, DevServerStatus, Price, Resources
from neorion.devservers.model.kube_types import DevServerFlavor, DevServerObject
from neorion.keel.kube import ObjectMeta
from neorion.keel.kube.core import Container, PersistentVolumeClaim, Pod, PodSpec, PodStatus
from neorion.keel.kube.core.core_v1 import PersistentVolumeClaimStatus
from neorion.keel.kube.core.pods import ContainerState, ContainerStatus
from neorion.keel.kube.core.pods import ContainerStateRunning as RunningState
from neorion.keel.kube.core.pods import ResourceRequirements as PodResources

CREATED = datetime(2026, 11, 16, 8, tzinfo=UTC)
SETTINGS = OperatorSettings(default_image="registry.example/dev:1")
FLAVOR = DevServerFlavorSpec(
    resources=Resources(requests={"cpu": "1", "memory": "2Gi"}, limits={"cpu": "2", "memory": "4Gi"}),
    price=Price(per_hour="1", stopped="0.1"),
)

_SPEC = DevServerSpec(flavor="cpu-small")
_STATUS = DevServerStatus()


def a_server(
    spec: DevServerSpec = _SPEC,
    status: DevServerStatus = _STATUS,
    annotations: dict[str, str] | None = None,
    *,
    deleted: str | None = None,
) -> DevServerObject:
    meta = ObjectMeta(
        name="mydev",
        namespace="dev-ann",
        uid="1",
        generation=1,
        created=CREATED.isoformat(),
        deleted=deleted,
        annotations=annotations or {},
    )
    return DevServerObject(meta=meta, spec=spec, status=status)


def a_flavor(spec: DevServerFlavorSpec = FLAVOR, name: str = "cpu-small") -> DevServerFlavor:
    return DevServerFlavor(meta=ObjectMeta(name=name), spec=spec)


def a_claim(annotations: dict[str, str] | None = None) -> PersistentVolumeClaim:
    meta = ObjectMeta(name="mydev-home", namespace="dev-ann", annotations=annotations or {})
    return PersistentVolumeClaim(meta=meta, status=PersistentVolumeClaimStatus(phase="Bound"))


def a_pod(flavor: DevServerFlavorSpec = FLAVOR, status: PodStatus | None = None) -> Pod:
    """A pod that is ready, unless `status` says otherwise."""
    resources = PodResources(
        requests={name: str(amount) for name, amount in flavor.resources.requests.items()},
        limits={name: str(amount) for name, amount in flavor.resources.limits.items()},
    )
    running = ContainerState(running=RunningState())
    ready = ContainerStatus(name="dev", ready=True, state=running, resources=resources)
    return Pod(
        meta=ObjectMeta(name="mydev-x", namespace="dev-ann", created=CREATED.isoformat()),
        spec=PodSpec(
            containers=(Container(name="dev", image="image", resources=resources),),
            node_name="node1" if status is None else "",
            node_selector=dict(flavor.node_selector),
        ),
        status=status or PodStatus(phase="Running", containers=(ready,)),
    )
