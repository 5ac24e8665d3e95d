"""Traefik as an implementation of the Gateway API, at port 80 of the bridge."""

import json
from typing import Final

from neorion.drydock.addons.definitions import publish_definitions
from neorion.drydock.api import Object
from neorion.drydock.cluster import Cluster
from neorion.drydock.host import Component
from neorion.drydock.layout import Layout
from neorion.drydock.pki import Subject
from neorion.keel.base import Retry

NAME: Final = "traefik"
PROGRAMS: Final = ("traefik",)
_GROUP: Final = "gateway.networking.k8s.io"
# The port that Gateways ask for; a listener has to have the port of an entry point.
_PORT: Final = 80


def url(layout: Layout) -> str:
    return f"http://{layout.addresses.host}:{_PORT}"


async def start(cluster: Cluster) -> None:
    """Returns when it listens. Gateways are the user's to make."""
    layout, program = cluster.layout, cluster.shelf.path(NAME)
    host = str(layout.addresses.host)
    # It reads Secrets, Services and routes of all namespaces, and writes the status of many kinds.
    cluster.pki.issue(NAME, Subject("drydock-traefik", ("system:masters",)))
    cluster.pki.kubeconfig(layout.kubeconfig_of(NAME), NAME, layout.server)
    await publish_definitions(cluster, json.loads((program.parent / "manifests.json").read_text()))
    flags = {
        "entrypoints.web.address": url(layout).removeprefix("http://"),
        "providers.kubernetesgateway": "true",
        "providers.kubernetesgateway.statusaddress.ip": host,
        "global.checknewversion": "false",
        "global.sendanonymoususage": "false",
        "log.level": "ERROR",
    }
    argv = (str(program), *(f"--{flag}={value}" for flag, value in flags.items()))
    part = Component(NAME, argv, {"KUBECONFIG": str(layout.kubeconfig_of(NAME))})
    body: Object = {
        "apiVersion": f"{_GROUP}/v1",
        "kind": "GatewayClass",
        "metadata": {"name": NAME},
        "spec": {"controllerName": "traefik.io/gateway-controller"},
    }
    async with cluster.api() as api:
        await cluster.ensure(part)
        await api.apply(f"/apis/{_GROUP}/v1/gatewayclasses/{NAME}", body)

        async def accepted() -> None:
            found = await api.get(f"/apis/{_GROUP}/v1/gatewayclasses/{NAME}")
            conditions = found.get("status", {}).get("conditions", [])
            if not any(each["type"] == "Accepted" and each["status"] == "True" for each in conditions):
                raise Retry(
                    "traefik.starting", "Traefik has not taken its class up.", hint="It will in a moment."
                )

        await cluster.until(part, accepted)
