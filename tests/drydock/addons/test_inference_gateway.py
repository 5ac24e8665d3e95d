"""What the inference gateway serves, and what Envoy is told. No cluster takes part."""

import json
from dataclasses import replace
from pathlib import Path

import anyio
import msgspec
import pytest

from neorion.drydock.addons.inference_gateway import envoy
from neorion.drydock.addons.inference_gateway.decide import (
    PoolBackend,
    ServedPort,
    ServedRoute,
    Snapshot,
    backends,
    ports,
    unresolved,
)
from neorion.drydock.addons.inference_gateway.kinds import (
    POOL_GROUP,
    BackendReference,
    Gateway,
    GatewaySpec,
    HttpRoute,
    HttpRouteSpec,
    InferencePool,
    InferencePoolSpec,
    Listener,
    ParentReference,
    PickerReference,
    PoolPort,
    PoolSelector,
    RouteRule,
)
from neorion.drydock.binaries import BinaryCache
from neorion.keel.kube import ObjectKey, ObjectMeta
from neorion.keel.kube.core import Pod
from neorion.keel.kube.core.pods import PodStatus

GATEWAY = Gateway(ObjectMeta("edge", "team"), GatewaySpec("inference", (Listener("http", 80),)))
POOL = InferencePool(
    meta=ObjectMeta("pool", "team"),
    spec=InferencePoolSpec(PickerReference("picker"), PoolSelector({"serves": "model"}), (PoolPort(8080),)),
)


def route(**backend: str) -> HttpRoute:
    reference = msgspec.structs.replace(BackendReference("pool", POOL_GROUP, "InferencePool"), **backend)
    rules = (RouteRule((reference,)),)
    spec = HttpRouteSpec((ParentReference("edge"),), ("model.test",), rules)
    return HttpRoute(ObjectMeta("route", "team"), spec)


def pod(name: str, namespace: str = "team", label: str = "model", ip: str = "10.0.0.1") -> Pod:
    return Pod(ObjectMeta(name, namespace, labels={"serves": label}), status=PodStatus(pod_ip=ip))


SNAPSHOT = Snapshot((GATEWAY,), (route(),), (POOL,), (), {})


def test_a_route_to_a_pool_is_served_at_the_port_of_its_gateway():
    assert ports(SNAPSHOT) == (ServedPort(80, (ServedRoute(("model.test",), (("team/pool", 1),)),)),)


@pytest.mark.parametrize(
    ("backend", "reason"),
    [
        ({"group": "", "kind": "Service"}, "InvalidKind"),
        ({"namespace": "other"}, "RefNotPermitted"),
        ({"name": "absent"}, "BackendNotFound"),
    ],
)
def test_a_route_to_anything_else_is_not_served_and_says_why(backend: dict[str, str], reason: str):
    other = route(**backend)
    assert unresolved(other, (POOL,)) == reason
    assert ports(replace(SNAPSHOT, routes=(other,))) == (ServedPort(80, ()),)


def test_a_pool_has_the_pods_of_its_labels_and_namespace_that_have_an_address():
    pods = (pod("a"), pod("b", ip=""), pod("c", label="other"), pod("d", namespace="other"))
    (found,) = backends(
        replace(SNAPSHOT, pods=pods, pickers={ObjectKey("team", "picker"): ("10.0.0.9:9002",)})
    )
    assert found == PoolBackend("team/pool", ("10.0.0.1:8080",), ("10.0.0.9:9002",), fails_open=False)


@pytest.mark.needs("inference-gateway")
@pytest.mark.anyio
async def test_envoy_takes_the_configuration(tmp_path: Path):
    """Envoy itself judges it. Two routes of one host, and a pool without servers, are no errors."""
    pools = [
        PoolBackend("team/pool", ("10.0.0.1:8080",), ("10.0.0.9:9002",), fails_open=True),
        PoolBackend("team/empty", (), (), fails_open=False),
    ]
    routes = (
        ServedRoute(("model.test", "*"), (("team/pool", 70), ("team/empty", 30))),
        ServedRoute(("model.test",), (("team/empty", 1),)),
    )
    listeners = envoy.listeners("127.0.0.1", [ServedPort(80, routes)], pools)["resources"]
    clusters = envoy.clusters(pools)["resources"]
    resources = {"listeners": listeners, "clusters": clusters}
    static = {
        kind: [{key: value for key, value in each.items() if key != "@type"} for each in found]
        for kind, found in resources.items()
    }
    whole = {**envoy.bootstrap(tmp_path), "static_resources": static}
    del whole["dynamic_resources"]
    (tmp_path / "whole.json").write_text(json.dumps(whole))
    argv = [str(BinaryCache.of().path("envoy")), "--mode", "validate", "-c", str(tmp_path / "whole.json")]
    done = await anyio.run_process(argv, check=False)
    assert done.returncode == 0, done.stderr.decode()
