"""The manifests of navarch: a server takes them, they fit each other, and the rights they give are enough and no more."""

import json
import re
from pathlib import Path
from typing import Any

import anyio
import pytest
import yaml

from neorion.drydock.cluster import Cluster
from neorion.keel.base import Denied, Duration
from neorion.keel.clock import SystemClock, system_rng
from neorion.keel.config import loads
from neorion.keel.kube.client import Client
from neorion.keel.kube.control import InformerFactory
from neorion.keel.kube.core import CONFIG_MAP, NODE, POD, SECRET
from neorion.navarch.adapters.config_file import ConfigFile, pool_specs
from neorion.navarch.adapters.kube import KubeDemand
from neorion.navarch.model import NodeState
from tests.kube.navarch_nodes import PATIENCE_S, kube_node, pod, running, scheduling, stopped
from tests.kube.test_navarch_scheduler import fleet_node

pytestmark = [pytest.mark.anyio, pytest.mark.usefixtures("cut_connections")]

INFRA = Path(__file__).parents[2] / "infra"
FOLDER = INFRA / "navarch"
ACCOUNT = "system:serviceaccount:navarch:navarch-control-plane"
# What the guide promises under these names.
PROMISED = {
    ("Namespace", "navarch"),
    ("Secret", "navarch-credentials"),
    ("ConfigMap", "navarch-config"),
    ("Deployment", "navarch-control-plane"),
    ("Service", "navarch-control-plane"),
    ("DaemonSet", "navarch-node-agent"),
    ("ServiceMonitor", "navarch-control-plane"),
}


def manifests() -> list[dict[str, Any]]:
    names = yaml.safe_load((FOLDER / "kustomization.yaml").read_text())["resources"]
    assert {*names, "kustomization.yaml"} == {path.name for path in FOLDER.iterdir()}
    return [one for name in names for one in yaml.safe_load_all((FOLDER / name).read_text())]


def found(kind: str, name: str = "navarch-control-plane") -> dict[str, Any]:
    (one,) = [each for each in manifests() if (each["kind"], each["metadata"]["name"]) == (kind, name)]
    return one


@pytest.fixture
async def applied(cluster: Cluster, api: Client) -> Client:
    """The API as the control plane's account sees it, with everything applied but what needs the Prometheus operator."""
    items = [one for one in manifests() if one["kind"] != "ServiceMonitor"]
    body = json.dumps({"apiVersion": "v1", "kind": "List", "items": items})
    await cluster.kubectl("apply", "--server-side", "--validate=strict", "-f", "-", say=body)
    # Left there: another process of this run may use them, and they go with the cluster.
    account = api.acting_as(ACCOUNT)
    with anyio.fail_after(PATIENCE_S):
        while await _is_refused(account):
            await SystemClock().sleep(Duration.of(ms=50))
    return account


async def _is_refused(account: Client) -> bool:
    """An API server heeds new rights in its own time."""
    try:
        await account.list(NODE)
    except Denied:
        return True
    return False


def test_everything_that_was_promised_is_there():
    assert {(one["kind"], one["metadata"]["name"]) for one in manifests()} >= PROMISED


def test_the_parts_fit_each_other():
    deployment, service = found("Deployment"), found("Service")
    monitor, daemon = found("ServiceMonitor"), found("DaemonSet", "navarch-node-agent")
    labels = deployment["spec"]["template"]["metadata"]["labels"]
    assert service["spec"]["selector"].items() <= labels.items()
    assert monitor["spec"]["selector"]["matchLabels"].items() <= service["metadata"]["labels"].items()
    (port,) = service["spec"]["ports"]
    assert {one["port"] for one in monitor["spec"]["endpoints"]} == {port["name"]}
    (container,) = deployment["spec"]["template"]["spec"]["containers"]
    assert {one["containerPort"]: one["name"] for one in container["ports"]} == {50051: port["targetPort"]}
    (agent,) = daemon["spec"]["template"]["spec"]["containers"]
    assert f"--server=navarch-control-plane.navarch.svc.cluster.local:{port['port']}" in agent["args"]
    keys = set(found("Secret", "navarch-credentials")["stringData"])
    for one in (container, agent):
        asked = {
            said["valueFrom"]["secretKeyRef"]["key"]
            for said in one["env"]
            if "secretKeyRef" in said.get("valueFrom", {})
        }
        assert asked <= keys
    # An agent must not be able to do what an operator can.
    assert not any(
        said.get("valueFrom", {}).get("secretKeyRef", {}).get("key") == "auth-token" for said in agent["env"]
    )


def test_the_configuration_is_one_that_the_control_plane_takes():
    file = loads(found("ConfigMap", "navarch-config")["data"]["config.yaml"], ConfigFile, {})
    assert file.server.bind_address == ("0.0.0.0", 50051)  # noqa: S104 -- what the manifest says
    assert file.server.kubernetes is not None
    assert pool_specs(file)["k8s-gpu-workers"].scaling.most == 50
    (container,) = found("Deployment")["spec"]["template"]["spec"]["containers"]
    mounted = {one["mountPath"] for one in container["volumeMounts"]}
    assert {file.server.state_dir, "/etc/navarch"} <= mounted


def test_the_image_has_the_versions_that_are_tested():
    def pins(path: str) -> dict[str, str]:
        text = (INFRA.parent / path).read_text()
        return dict(re.findall(r"^([a-z0-9][a-z0-9._-]*)==([^ ;\\]+)", text, re.MULTILINE))

    image, tested = pins("infra/docker/navarch-control-plane/requirements.txt"), pins("constraints.txt")
    assert {"aiohttp", "granian", "nvidia-ml-py", "psycopg"} <= image.keys()
    assert image.items() <= tested.items()


async def test_the_rights_are_enough_to_mark_drain_and_forget(
    applied: Client, api: Client, kube_namespace: str
):
    name = f"gpu-{kube_namespace}"
    async with kube_node(api, name), scheduling(applied) as scheduler:
        await running(api, pod(kube_namespace, "web-1", name), pod(kube_namespace, "web-2", name))
        await scheduler.cordon(fleet_node(name), "XID 79")
        draining = fleet_node(name, NodeState.DRAINING)
        assert (await scheduler.drain(draining, "XID 79", Duration.of(hours=1))).left == 2
        assert await stopped(api, kube_namespace) == ["web-1", "web-2"]
        await running(api, pod(kube_namespace, "late", name))
        assert "its time is over" in (await scheduler.drain(draining, "XID 79", Duration(0))).sentence
        await scheduler.uncordon(fleet_node(name, NodeState.ACTIVE))
        await scheduler.forget(fleet_node(name, NodeState.DRAINED))


async def test_the_rights_are_enough_to_read_the_queue(applied: Client):
    informers = InformerFactory(applied, SystemClock(), system_rng())
    demand = KubeDemand(informers, kueue=False)
    async with anyio.create_task_group() as group:
        group.start_soon(informers.run)
        with anyio.fail_after(60):
            await informers.wait_synced()
        assert (await demand.demand("nobodys")).pending == 0
        group.cancel_scope.cancel()


async def test_the_rights_are_no_more_than_that(applied: Client, kube_namespace: str):
    body = pod(kube_namespace, "mine", "")
    for call in (
        applied.list(SECRET, "navarch"),
        applied.list(CONFIG_MAP, "kube-system"),
        applied.create(POD, body),
        applied.create(NODE, {"metadata": {"name": "mine"}}),
        applied.acting_as("system:serviceaccount:navarch:navarch-node-agent").list(NODE),
    ):
        with pytest.raises(Denied):
            await call
