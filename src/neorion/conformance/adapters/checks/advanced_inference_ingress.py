"""advanced_inference_ingress: requests to an InferencePool go where its endpoint picker says."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from neorion.conformance.adapters.check import Check
from neorion.conformance.adapters.groups import served
from neorion.conformance.adapters.kinds import (
    GATEWAY,
    GATEWAY_CLASS,
    HTTP_ROUTE,
    INFERENCE_POOL,
    POD,
    ROLE,
    ROLE_BINDING,
    SERVICE,
    SERVICE_ACCOUNT,
    Json,
)
from neorion.conformance.adapters.pods import NO_HTTP_CLIENT, NO_REAL_NODE, on_node, pod_spec, real_node
from neorion.conformance.adapters.workspace import Workspace
from neorion.conformance.decide import inference_pool as judge
from neorion.conformance.decide import traffic
from neorion.conformance.decide.nodes import environment_of
from neorion.conformance.decide.verdict import control_of
from neorion.conformance.model import CheckPlan, Outcome
from neorion.keel.base import Duration, Error, Retry
from neorion.keel.cli.kit import missing_packages

if TYPE_CHECKING:
    from neorion.conformance.adapters.gateway import GatewayClient

_GATEWAY: Final = "gateway-"
_PORT: Final = 8080
_PICKER_PORT: Final = 9002
_SERVERS: Final = ("first", "second", "third")
_LABEL: Final = "conformance.neorion.dev/model-server"
_PICKER_LABEL: Final = {"conformance.neorion.dev/picker": "picker"}
_REQUESTS: Final = 60
# Of a server that has room for less than others; short enough that no picker calls the pool saturated.
_LONG: Final = 4
# Pickers read the reports several times a second, and gateways learn of changes as fast.
_SETTLE: Final = Duration.of(seconds=2)
_WORDS: Final = "requests go to the server with the shortest queue"
_LIMITS: Final = ("The model servers are stand-ins, which report what they are told.",)


async def _run(workspace: Workspace) -> Outcome:
    if not (await served(workspace, INFERENCE_POOL) and await served(workspace, HTTP_ROUTE)):
        return Outcome(
            missing="The Gateway API Inference Extension (inference.networking.k8s.io/v1) is not served."
        )
    classes, stated = judge.candidates(await workspace.api.list(GATEWAY_CLASS))
    wanted = workspace.options.gateway_class
    classes = [each for each in classes if wanted in {"", each}]
    if not classes:
        return Outcome(missing="No accepted GatewayClass takes InferencePools.")
    if missing_packages("conformance"):
        return Outcome(missing=NO_HTTP_CLIENT)
    node = await real_node(workspace)
    if node is None:
        return Outcome(missing=NO_REAL_NODE)
    await _make_servers(workspace, node)
    await _make_picker(workspace, node)
    pool = await _make_route(workspace, classes)
    if not (judge.takers(pool) or stated or wanted):
        return Outcome(missing=f"No GatewayClass takes InferencePools: not {', '.join(classes)}.")
    if workspace.assert_that(judge.taken_up(pool)):
        gateway = await _programmed(workspace, judge.takers(pool)[0])
        if workspace.assert_that(traffic.programmed(gateway)) and gateway is not None:
            await _steer(workspace, traffic.addresses(gateway)[0])
    environment = environment_of(node, hardware=workspace.options.hardware)
    subject = ", ".join(judge.takers(pool)).replace(_GATEWAY, "") or ", ".join(classes)
    return Outcome(
        environment, tuple(workspace.assertions), tuple(workspace.controls), limits=_LIMITS, subject=subject
    )


async def _make_servers(workspace: Workspace, node: Json) -> None:
    for name in _SERVERS:
        script = judge.server_script(_PORT, name)
        spec = on_node(pod_spec(workspace, None, 0, ("sh", "-c", script)), node)
        spec["containers"][0]["ports"] = [{"containerPort": _PORT}]
        await workspace.create(POD, name, {"spec": spec}, {_LABEL: "true"})


async def _make_picker(workspace: Workspace, node: Json) -> None:
    """The picker of the extension's makers, with rights in this namespace alone, and the pool that it serves."""
    read = ["get", "list", "watch"]
    rules = [
        {"apiGroups": ["inference.networking.k8s.io"], "resources": ["inferencepools"], "verbs": read},
        {
            "apiGroups": ["inference.networking.x-k8s.io"],
            "resources": ["inferenceobjectives", "inferencemodelrewrites"],
            "verbs": read,
        },
        {"apiGroups": [""], "resources": ["pods"], "verbs": read},
    ]
    reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "picker"}
    subject = {"kind": "ServiceAccount", "name": "picker", "namespace": workspace.namespace}
    await workspace.create(SERVICE_ACCOUNT, "picker", {})
    await workspace.create(ROLE, "picker", {"rules": rules})
    await workspace.create(ROLE_BINDING, "picker", {"roleRef": reference, "subjects": [subject]})
    await workspace.create(POD, "picker", {"spec": _picker(workspace, node)}, _PICKER_LABEL)
    ports = [{"port": _PICKER_PORT, "appProtocol": "http2"}]
    await workspace.create(SERVICE, "picker", {"spec": {"selector": _PICKER_LABEL, "ports": ports}})
    pool = {
        "selector": {"matchLabels": {_LABEL: "true"}},
        "targetPorts": [{"number": _PORT}],
        "endpointPickerRef": {"name": "picker", "port": {"number": _PICKER_PORT}, "failureMode": "FailClose"},
    }
    await workspace.create(INFERENCE_POOL, "pool", {"spec": pool})


def _picker(workspace: Workspace, node: Json) -> Json:
    flags = {
        "pool-name": "pool",
        "pool-namespace": workspace.namespace,
        "grpc-port": _PICKER_PORT,
        "metrics-endpoint-auth": "false",
        "tracing": "false",
        "config-text": judge.PICKER_CONFIG,
    }
    spec = on_node(pod_spec(workspace, None, 0), node)
    container = spec["containers"][0]
    del container["command"]
    container |= {
        "image": workspace.options.picker_image,
        "args": [f"--{flag}={value}" for flag, value in flags.items()],
        "readinessProbe": {"tcpSocket": {"port": _PICKER_PORT}, "periodSeconds": 1},
        "resources": {"requests": {"cpu": "10m", "memory": "64Mi"}, "limits": {"memory": "512Mi"}},
    }
    return {**spec, "serviceAccountName": "picker", "automountServiceAccountToken": True}


async def _make_route(workspace: Workspace, classes: list[str]) -> Json | None:
    """The pool behind a Gateway of each class, once one of them has taken it up; None if none does."""
    names = {f"{_GATEWAY}{each}"[:63]: each for each in classes}
    for name, gateway_class in names.items():
        listener = {"name": "http", "port": 80, "protocol": "HTTP"}
        body = {"spec": {"gatewayClassName": gateway_class, "listeners": [listener]}}
        await workspace.create(GATEWAY, name, body)
    target = {"group": "inference.networking.k8s.io", "kind": "InferencePool", "name": "pool"}
    spec = {
        "parentRefs": [{"name": name} for name in names],
        "hostnames": [_host(workspace)],
        "rules": [{"backendRefs": [target]}],
    }
    await workspace.create(HTTP_ROUTE, "route", {"spec": spec})
    return await workspace.until(
        INFERENCE_POOL, lambda pools: next((each for each in pools if judge.takers(each)), None)
    )


async def _programmed(workspace: Workspace, name: str) -> Json | None:
    def ready(found: list[Json]) -> Json | None:
        mine = (each for each in found if each["metadata"]["name"] == name)
        return next((each for each in mine if traffic.programmed(each).held), None)

    return await workspace.until(GATEWAY, ready)


async def _steer(workspace: Workspace, address: str) -> None:
    # aiohttp comes with an extra, and everything else runs without it.
    from neorion.conformance.adapters.gateway import gateway_client  # noqa: PLC0415 -- see above

    async with gateway_client(workspace.api, address, workspace.clock) as client:
        await _report(workspace, {"first": 0})
        await _until_answered(workspace, client)
        counts = await _count(workspace, client)
        workspace.assert_that(traffic.all_from(_WORDS, counts, "first", _REQUESTS))
        await _report(workspace, {"second": 0})
        words = "they follow when another queue is the shortest"
        counts = await _count(workspace, client)
        workspace.assert_that(traffic.all_from(words, counts, "second", _REQUESTS))
        await _report(workspace, {})
        counts = await _count(workspace, client)
        preferred = traffic.all_from(words, counts, "second", _REQUESTS)
        arose = set(counts) == set(_SERVERS)
        workspace.control(control_of("equal queues", preferred, arose=arose))
        await workspace.api.delete(POD, "picker", workspace.namespace, at_once=True)
        await workspace.clock.sleep(_SETTLE)
        counts = await _count(workspace, client)
        workspace.assert_that(judge.refused("a pool that fails closed refuses without its picker", counts))
        reference = {"endpointPickerRef": {"failureMode": "FailOpen"}}
        await workspace.api.merge(INFERENCE_POOL, "pool", {"spec": reference}, workspace.namespace)
        await workspace.clock.sleep(_SETTLE)
        counts = await _count(workspace, client)
        words = "a pool that fails open serves without its picker"
        workspace.assert_that(judge.served(words, counts, _SERVERS))


async def _report(workspace: Workspace, short: Mapping[str, int]) -> None:
    """Each server reports a queue: those that are named this length, all others a long one."""
    for name in _SERVERS:
        path = f"/api/v1/namespaces/{workspace.namespace}/pods/{name}:{_PORT}/proxy/cgi-bin/queue"
        until = workspace.clock.monotonic() + workspace.options.patience.seconds
        while True:
            try:
                await workspace.api.read_text(f"{path}?{short.get(name, _LONG)}")
            except Error:
                # The server has not begun to listen.
                if workspace.clock.monotonic() > until:
                    raise
                await workspace.clock.sleep(workspace.pause)
            else:
                break
    await workspace.clock.sleep(_SETTLE)


async def _until_answered(workspace: Workspace, client: "GatewayClient") -> None:
    """Waits for the first answer: a pool is accepted before its picker has begun."""
    until = workspace.clock.monotonic() + workspace.options.patience.seconds
    while workspace.clock.monotonic() < until:
        try:
            if (await client.ask(_host(workspace), body=_request(0)))[0] == 200:
                break
        except Retry as error:
            workspace.api.note("waiting", {"message": error.sentence})
        await workspace.clock.sleep(workspace.pause)


async def _count(workspace: Workspace, client: "GatewayClient") -> dict[str, int]:
    return await client.count(_host(workspace), _REQUESTS, body=_request)


def _request(index: int) -> Json:
    """A request for a completion. Each has another prompt: none is answered from a cache."""
    return {"model": "stand-in", "prompt": f"{index} is the number of this request.", "max_tokens": 1}


def _host(workspace: Workspace) -> str:
    return f"pool.{workspace.run}.conformance.neorion.dev"


ADVANCED_INFERENCE_INGRESS: Final = Check(
    "advanced_inference_ingress",
    CheckPlan(
        ("4 Pods", "Gateway", "HTTPRoute", "InferencePool", "Service", "ServiceAccount with a Role"),
        (
            "a GatewayClass that takes InferencePools, with a listener on port 80",
            "the image of the endpoint picker",
            "a real kubelet",
            "an image with a shell and httpd",
        ),
        40,
    ),
    _run,
    (
        "list gatewayclasses.gateway.networking.k8s.io",
        "create gateways.gateway.networking.k8s.io",
        "create httproutes.gateway.networking.k8s.io",
        "create inferencepools.inference.networking.k8s.io",
        "patch inferencepools.inference.networking.k8s.io",
        "create services",
        "create serviceaccounts",
        "create roles.rbac.authorization.k8s.io",
        "create rolebindings.rbac.authorization.k8s.io",
        "get pods/proxy",
    ),
)
