"""Gives a cluster the gateway: definitions and class, Envoy, and the process that configures it."""

import json
import sys
from pathlib import Path
from typing import Final

from neorion.drydock.addons.definitions import publish_definitions
from neorion.drydock.addons.inference_gateway import envoy
from neorion.drydock.addons.inference_gateway.controller import CLASS, CONTROLLER
from neorion.drydock.addons.inference_gateway.kinds import GATEWAY_GROUP, POOL_GROUP
from neorion.drydock.addons.rbac import Rule, granted, user
from neorion.drydock.api import Api, Object
from neorion.drydock.cluster import Cluster
from neorion.drydock.host import Component
from neorion.drydock.images import ENDPOINT_PICKER, ImageStore, Registry, provide
from neorion.drydock.layout import Layout
from neorion.drydock.machine import ask
from neorion.drydock.pki import Subject
from neorion.keel.base import Retry
from neorion.keel.kube import UnknownKind, time_text

NAME: Final = "inference-gateway"
# The picker runs in pods of those who make a pool; its image comes from the cluster's registry. With Traefik come the
# definitions of the Gateway API.
PROGRAMS: Final = ("envoy", "epp", "traefik")
_USER: Final = f"drydock:{NAME}"
_ENVOY: Final = "envoy"
# By this name the extension's own suite asks whether a class takes pools.
_FEATURE: Final = "SupportInferencePool"


def url(layout: Layout) -> str:
    return f"http://{layout.addresses.gateway}"


def folder_of(layout: Layout) -> Path:
    """The folder with Envoy's configuration."""
    return layout.data(NAME)


async def start(cluster: Cluster) -> None:
    """Returns when Envoy has its first configuration. Gateways and pools are the user's to make."""
    layout = cluster.layout
    addresses = layout.addresses
    # An address of its own: port 80 of the bridge's first one is Traefik's. It goes with the bridge.
    await ask(["ip", "address", "replace", f"{addresses.gateway}/32", "dev", addresses.bridge])
    store = ImageStore.of(cluster.shelf)
    await provide(store, [ENDPOINT_PICKER.name])
    await store.push(ENDPOINT_PICKER.name, Registry.of(layout).address)
    cluster.pki.issue(NAME, Subject(_USER))
    cluster.pki.kubeconfig(layout.kubeconfig_of(NAME), NAME, layout.server)
    folder = folder_of(layout)
    folder.mkdir(mode=0o700, exist_ok=True)
    bootstrap = folder / "bootstrap.json"
    bootstrap.write_text(json.dumps(envoy.bootstrap(folder)))
    argv = (sys.executable, "-P", "-m", __package__ or "", str(layout.folder))
    controller = Component(NAME, argv)
    proxy = Component(
        _ENVOY,
        (
            str(cluster.shelf.path("envoy")),
            f"--config-path={bootstrap}",
            "--log-level=warning",
            "--concurrency=1",
            # Several clusters of one machine each have an Envoy.
            "--use-dynamic-base-id",
        ),
    )
    async with cluster.api() as api:
        await _publish(cluster, api)
        await cluster.ensure(controller)
        await cluster.until(controller, lambda: _require(folder / envoy.LISTENERS))
        await cluster.ensure(proxy)


async def _publish(cluster: Cluster, api: Api) -> None:
    # Another add-on may have defined the Gateway API in a version of its own.
    programs = ("epp",) if await _serves_gateways(api) else ("epp", "traefik")
    for program in programs:
        source = cluster.shelf.path(program).parent / "manifests.json"
        await publish_definitions(cluster, json.loads(source.read_text()))
    for path, body in granted(_USER, user(_USER), _rules()):
        await api.apply(path, body)
    path = f"/apis/{GATEWAY_GROUP}/v1/gatewayclasses/{CLASS}"
    body: Object = {
        "apiVersion": f"{GATEWAY_GROUP}/v1",
        "kind": "GatewayClass",
        "metadata": {"name": CLASS},
        "spec": {"controllerName": CONTROLLER},
    }
    made = await api.apply(path, body)
    accepted = {
        "type": "Accepted",
        "status": "True",
        "reason": "Accepted",
        "message": "",
        "observedGeneration": made["metadata"]["generation"],
        "lastTransitionTime": time_text(cluster.clock.now()),
    }
    status = {"conditions": [accepted], "supportedFeatures": [{"name": _FEATURE}]}
    await api.merge(f"{path}/status", {"status": status})


async def _serves_gateways(api: Api) -> bool:
    try:
        await api.get(f"/apis/{GATEWAY_GROUP}/v1/gatewayclasses")
    except UnknownKind:
        return False
    return True


async def _require(path: Path) -> None:
    if not path.exists():
        raise Retry(
            "drydock.gateway_starting", "The gateway has no configuration yet.", hint="It will in a moment."
        )


def _rules() -> list[Rule]:
    watch = ["get", "list", "watch"]
    return [
        {"apiGroups": [""], "resources": ["pods"], "verbs": watch},
        {"apiGroups": ["discovery.k8s.io"], "resources": ["endpointslices"], "verbs": watch},
        {"apiGroups": [GATEWAY_GROUP], "resources": ["gateways", "httproutes"], "verbs": watch},
        {"apiGroups": [POOL_GROUP], "resources": ["inferencepools"], "verbs": watch},
        {
            "apiGroups": [GATEWAY_GROUP],
            "resources": ["gateways/status", "httproutes/status"],
            "verbs": ["patch", "update"],
        },
        {"apiGroups": [POOL_GROUP], "resources": ["inferencepools/status"], "verbs": ["patch", "update"]},
    ]
