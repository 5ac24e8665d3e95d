"""Servers that run and everything of theirs, as one operator or the other leaves them, put into etcd."""

import json
import ssl
import subprocess
from base64 import b64encode
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any, Final
from uuid import NAMESPACE_OID, uuid5

import aiohttp
import msgspec

from bench.devservers.operator import SPEC
from bench.devservers.sides import NAMESPACE, together
from bench.devservers.world import RUNNING, SINCE, pod_of
from neorion.devservers.controllers.devserver import to_datetime
from neorion.devservers.decide import FINALIZER, Observed, OperatorSettings, decide
from neorion.devservers.model.kube_types import (
    DEVSERVERFLAVORS,
    DEVSERVERS,
    DevServerFlavor,
    DevServerObject,
    ServerDeployment,
)
from neorion.drydock.cluster import Cluster
from neorion.drydock.layout import LOOPBACK, PortOffset
from neorion.keel.clock import SystemClock
from neorion.keel.kube.client import Client
from neorion.keel.kube.control.apply_hash import DesiredManifest
from neorion.keel.kube.core import PersistentVolumeClaim, Pod

# Where an API server keeps them.
_PLACES: Final = {
    "PersistentVolumeClaim": "persistentvolumeclaims",
    "Service": "services/specs",
    "Deployment": "deployments",
    "Pod": "pods",
    "DevServer": "devservers.io/devservers",
}
# One server's: what etcd takes in one transaction has one version, and API servers count on one object of a kind for each.
_AT_ONCE: Final = len(_PLACES)

Manifest = dict[str, Any]


async def furnished(api: Client, size: int, born: str) -> Iterator[Manifest]:
    """Servers with their flavor and their pod. One is made by the API server, which knows the defaults."""
    made = await api.create(
        DEVSERVERS.raw, {"metadata": {"name": "any", "namespace": NAMESPACE}, "spec": dict(SPEC)}
    )
    await api.delete(DEVSERVERS, "any", NAMESPACE)
    flavor = await api.get(DEVSERVERFLAVORS.raw, "bench")

    def each() -> Iterator[Manifest]:
        for number in range(size):
            key = together(number)
            name = key.name
            meta = {"name": name, "namespace": key.namespace, "finalizers": [FINALIZER]}
            server = {**made, "metadata": {**meta, **_born(f"server {name}", born)}}
            bare = pod_of(key)
            meta = {**bare["metadata"], **_born(f"pod {name}", born)}
            pod = {"apiVersion": "v1", "kind": "Pod", **bare, "metadata": meta, "status": RUNNING}
            yield {"server": server, "flavor": flavor, "pod": pod}

    return each()


def ours_at_rest(given: Iterator[Manifest]) -> Iterator[Manifest]:
    for one in given:
        server, pod = msgspec.convert(one["server"], DevServerObject), msgspec.convert(one["pod"], Pod)
        seen = Observed(server, msgspec.convert(one["flavor"], DevServerFlavor), pods=(pod,))
        settings, now = OperatorSettings("any"), to_datetime(SystemClock().now())
        # The first look makes the objects, the second sees them.
        made = {body["kind"]: _applied(body) for body in decide(seen, settings, now).objects}
        home = msgspec.convert(made["PersistentVolumeClaim"], PersistentVolumeClaim)
        body = msgspec.convert(made["Deployment"], ServerDeployment)
        whole = Observed(server, seen.flavor, home, body, (pod,))
        status = msgspec.to_builtins(decide(whole, settings, now).status)
        # One for all of the namespace, which the operator makes.
        del made["ConfigMap"]
        yield from (*made.values(), one["pod"], {**one["server"], "status": status})


def reference_at_rest(given: Iterator[Manifest], program: Path) -> Iterator[Manifest]:
    everything = list(given)
    lines = "\n".join(json.dumps(one) for one in everything)
    done = subprocess.run([program, "rest"], input=lines, capture_output=True, text=True, check=True)
    kinds = ("PersistentVolumeClaim", "Service", "Deployment", "DevServer")
    versions = {"Deployment": "apps/v1", "DevServer": "devservers.io/v1"}
    for number, line in enumerate(done.stdout.splitlines()):
        body, kind = json.loads(line), kinds[number % len(kinds)]
        if kind == "DevServer":
            # The reference knows a part of the spec only.
            one = everything[number // len(kinds)]
            yield one["pod"]
            yield {**one["server"], "status": body["status"]}
        else:
            yield _standing({**body, "apiVersion": versions.get(kind, "v1"), "kind": kind})


def _applied(manifest: Manifest) -> Manifest:
    return _standing(DesiredManifest.of(manifest).with_annotation(None))


def _standing(body: Manifest) -> Manifest:
    meta = {**body["metadata"], **_born(f"{body['kind']} {body['metadata']['name']}", SINCE)}
    if body["kind"] != "Deployment":
        del meta["generation"]
    bound = {"status": {"phase": "Bound"}} if body["kind"] == "PersistentVolumeClaim" else {}
    return {**body, "metadata": meta, **bound}


def _born(what: str, when: str) -> Manifest:
    return {"uid": str(uuid5(NAMESPACE_OID, what)), "creationTimestamp": when, "generation": 1}


async def put(cluster: Cluster, objects: Iterator[Manifest]) -> None:
    pki = cluster.pki
    tls = ssl.create_default_context(cafile=str(pki.certificate("ca")))
    tls.load_cert_chain(pki.certificate("etcd-client"), pki.key("etcd-client"))
    address = f"https://{LOOPBACK}:{cluster.layout.port(PortOffset.ETCD)}/v3/kv/txn"
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(ssl=tls)) as session:
        while some := [_put(body) for body in islice(objects, _AT_ONCE)]:
            async with session.post(address, json={"success": some}) as response:
                response.raise_for_status()


def _put(body: Manifest) -> Manifest:
    meta = body["metadata"]
    key = f"/registry/{_PLACES[body['kind']]}/{meta['namespace']}/{meta['name']}"
    value = json.dumps(body).encode()
    return {"requestPut": {"key": b64encode(key.encode()).decode(), "value": b64encode(value).decode()}}
