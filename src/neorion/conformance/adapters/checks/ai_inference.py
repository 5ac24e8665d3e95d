"""ai_inference: weights, headers, streams and references through a gateway of any class."""

from typing import Final

from neorion.conformance.adapters.check import Check
from neorion.conformance.adapters.groups import served
from neorion.conformance.adapters.kinds import (
    GATEWAY,
    GATEWAY_CLASS,
    HTTP_ROUTE,
    NAMESPACE,
    POD,
    SERVICE,
    Json,
    kind,
)
from neorion.conformance.adapters.pods import NO_HTTP_CLIENT, NO_REAL_NODE, on_node, pod_spec, real_node
from neorion.conformance.adapters.workspace import Workspace
from neorion.conformance.decide import traffic
from neorion.conformance.decide.nodes import environment_of
from neorion.conformance.decide.verdict import control_of
from neorion.conformance.model import CheckPlan, Outcome
from neorion.keel.base import Duration, Retry
from neorion.keel.cli.kit import missing_packages

_GRANT: Final = kind("ReferenceGrant", "referencegrants", "gateway.networking.k8s.io/v1beta1")
_PORT: Final = 8080
_REQUESTS: Final = 500
_HEADER_REQUESTS: Final = 50
_PAUSE_S: Final = 1
_HEADER: Final = {"x-model": "large"}
_BACKENDS: Final = ("stable", "canary", "unused")
_WEIGHTS: Final = {"stable": 70, "canary": 30, "unused": 0}
_SETTLE: Final = Duration.of(seconds=2)


async def _run(workspace: Workspace) -> Outcome:
    if not await served(workspace, HTTP_ROUTE):
        return Outcome(missing="The Gateway API (gateway.networking.k8s.io/v1) is not served.")
    name = await _class(workspace)
    if not name:
        return Outcome(missing="No GatewayClass is accepted by a controller.")
    if missing_packages("conformance"):
        return Outcome(missing=NO_HTTP_CLIENT)
    node = await real_node(workspace)
    if node is None:
        return Outcome(missing=NO_REAL_NODE)
    await _make_backends(workspace, node)
    gateway = await _make_gateway(workspace, name)
    if workspace.assert_that(traffic.programmed(gateway)) and gateway is not None:
        await _route(workspace, traffic.addresses(gateway)[0])
        await _references(workspace, node)
    environment = environment_of(node, hardware=workspace.options.hardware)
    return Outcome(environment, tuple(workspace.assertions), tuple(workspace.controls), subject=name)


async def _class(workspace: Workspace) -> str:
    """The class of the options, else the first that a controller has accepted."""
    classes = await workspace.api.list(GATEWAY_CLASS)
    accepted = [each["metadata"]["name"] for each in classes if _accepted(each)]
    wanted = workspace.options.gateway_class
    return next((each for each in accepted if wanted in {"", each}), "")


async def _make_backends(workspace: Workspace, node: Json) -> None:
    for name in _BACKENDS:
        label = {"conformance.neorion.dev/backend": name}
        await workspace.create(POD, name, {"spec": _backend(workspace, node, name)}, label)
        await workspace.create(SERVICE, name, {"spec": {"selector": label, "ports": [{"port": _PORT}]}})
    await workspace.until(
        POD, lambda pods: all(pod.get("status", {}).get("phase") == "Running" for pod in pods) or None
    )


def _backend(workspace: Workspace, node: Json, name: str) -> Json:
    spec = pod_spec(workspace, None, 0, ("sh", "-c", traffic.server_script(_PORT, name, _PAUSE_S)))
    return on_node(spec, node)


async def _make_gateway(workspace: Workspace, name: str) -> Json | None:
    listener = {"name": "http", "port": 80, "protocol": "HTTP"}
    await workspace.create(GATEWAY, "gateway", {"spec": {"gatewayClassName": name, "listeners": [listener]}})

    def ready(found: list[Json]) -> Json | None:
        return next((each for each in found if traffic.programmed(each).held), None)

    return await workspace.until(GATEWAY, ready) or await workspace.api.get(
        GATEWAY, "gateway", workspace.namespace
    )


async def _route(workspace: Workspace, address: str) -> None:
    # aiohttp comes with an extra, and everything else runs without it.
    from neorion.conformance.adapters.gateway import gateway_client  # noqa: PLC0415 -- see above

    await workspace.create(HTTP_ROUTE, "split", {"spec": _spec(workspace, [_weighted(_WEIGHTS)])})
    host = _host(workspace)
    async with gateway_client(workspace.api, address, workspace.clock) as client:
        until = workspace.clock.monotonic() + workspace.options.patience.seconds
        while workspace.clock.monotonic() < until:
            try:
                if (await client.ask(host))[0] == 200:
                    break
            except Retry as error:
                workspace.api.note("waiting", {"message": error.sentence})
            await workspace.clock.sleep(workspace.pause)
        words = "requests are split by weight"
        workspace.assert_that(traffic.split_as(words, await client.count(host, _REQUESTS), _WEIGHTS))
        workspace.assert_that(traffic.refused((await client.ask("other.conformance.neorion.dev"))[0]))
        workspace.assert_that(traffic.streamed(*await client.stream(host), _PAUSE_S))
        await _change(workspace, [_by_header("unused"), _weighted(_WEIGHTS)])
        header = "requests with the header go to their own backend"
        counts = await client.count(host, _HEADER_REQUESTS, _HEADER)
        workspace.assert_that(traffic.all_from(header, counts, "unused", _HEADER_REQUESTS))
        await _change(workspace, [_weighted({"stable": 100, "canary": 0})])
        counts = await client.count(host, _REQUESTS)
        whole = traffic.split_as(words, counts, _WEIGHTS)
        arose = counts == {"stable": _REQUESTS}
        workspace.control(control_of("the same split on a route of 100 to 0", whole, arose=arose))
        counts = await client.count(host, _HEADER_REQUESTS, _HEADER)
        unruled = traffic.all_from(header, counts, "unused", _HEADER_REQUESTS)
        arose = counts == {"stable": _HEADER_REQUESTS}
        workspace.control(control_of("the same header without its rule", unruled, arose=arose))


async def _references(workspace: Workspace, node: Json) -> None:
    """A backend of another namespace is refused until that namespace grants it."""
    other = f"{workspace.namespace}-b"[:63]
    await workspace.create(NAMESPACE, other, {})
    metadata = {"namespace": other, "labels": workspace.labels}
    label = {"conformance.neorion.dev/backend": "stable"}
    # With a pod behind it: some gateways do not resolve a Service without endpoints.
    pod = {**metadata, "name": "stable", "labels": {**workspace.labels, **label}}
    await workspace.api.create(POD, {"metadata": pod, "spec": _backend(workspace, node, "stable")})
    service = {"selector": label, "ports": [{"port": _PORT}]}
    await workspace.api.create(SERVICE, {"metadata": {**metadata, "name": "stable"}, "spec": service})
    backend = {"name": "stable", "namespace": other, "port": _PORT}
    await workspace.create(
        HTTP_ROUTE,
        "across",
        {
            "spec": {
                **_spec(workspace, [{"backendRefs": [backend]}]),
                "hostnames": [f"across.{_host(workspace)}"],
            }
        },
    )
    refused = await _referenced(workspace, "False")
    workspace.assert_that(
        traffic.resolved("a backend of another namespace is refused", refused, expected=False)
    )
    grant = {
        "metadata": {**metadata, "name": "grant"},
        "spec": {
            "from": [
                {"group": "gateway.networking.k8s.io", "kind": "HTTPRoute", "namespace": workspace.namespace}
            ],
            "to": [{"group": "", "kind": "Service"}],
        },
    }
    await workspace.api.create(_GRANT, grant)
    granted = await _referenced(workspace, "True")
    workspace.assert_that(traffic.resolved("a backend that is granted is accepted", granted, expected=True))


async def _referenced(workspace: Workspace, status: str) -> Json:
    def search(found: list[Json]) -> Json | None:
        mine = (each for each in found if each["metadata"]["name"] == "across")
        return next((each for each in mine if traffic.references(each) == status), None)

    found = await workspace.until(HTTP_ROUTE, search)
    return found or await workspace.api.get(HTTP_ROUTE, "across", workspace.namespace)


async def _change(workspace: Workspace, rules: list[Json]) -> None:
    await workspace.api.merge(HTTP_ROUTE, "split", {"spec": {"rules": rules}}, workspace.namespace)
    # The status says that a route was accepted, and nothing says when its traffic follows.
    await workspace.clock.sleep(_SETTLE)


def _host(workspace: Workspace) -> str:
    """A host of this run alone: Gateways of one controller can share an address."""
    return f"{workspace.run}.conformance.neorion.dev"


def _spec(workspace: Workspace, rules: list[Json]) -> Json:
    return {"parentRefs": [{"name": "gateway"}], "hostnames": [_host(workspace)], "rules": rules}


def _weighted(weights: dict[str, int]) -> Json:
    return {
        "backendRefs": [{"name": name, "port": _PORT, "weight": weight} for name, weight in weights.items()]
    }


def _by_header(backend: str) -> Json:
    headers = [{"name": name, "value": value} for name, value in _HEADER.items()]
    return {"matches": [{"headers": headers}], "backendRefs": [{"name": backend, "port": _PORT}]}


def _accepted(gateway_class: Json) -> bool:
    conditions = gateway_class.get("status", {}).get("conditions", [])
    return any(each["type"] == "Accepted" and each["status"] == "True" for each in conditions)


AI_INFERENCE: Final = Check(
    "ai_inference",
    CheckPlan(
        ("Gateway", "2 HTTPRoutes", "3 Pods", "4 Services", "ReferenceGrant", "a second Namespace"),
        ("a GatewayClass with a listener on port 80", "a real kubelet", "an image with a shell and httpd"),
        30,
    ),
    _run,
    (
        "list gatewayclasses.gateway.networking.k8s.io",
        "create gateways.gateway.networking.k8s.io",
        "create httproutes.gateway.networking.k8s.io",
        "patch httproutes.gateway.networking.k8s.io",
        "create referencegrants.gateway.networking.k8s.io",
        "create services",
    ),
)
