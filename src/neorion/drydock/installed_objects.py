"""The objects of an installation whose program is a process of this machine: its kinds, rights and webhooks."""

from base64 import b64encode
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import anyio

from neorion.drydock.api import Api
from neorion.drydock.layout import LOOPBACK
from neorion.keel.base import Conflict

Manifest = dict[str, Any]

# A process of this machine replaces these. Without APIServices nothing has to be written outside the cluster's folder.
_REPLACED: Final = frozenset({"Deployment", "Service", "APIService", "Secret"})


@dataclass(frozen=True, slots=True)
class WebhookHost:
    """Where a process of this machine serves webhooks, and the authority of its certificate."""

    authority: Path
    port: int

    def client(self, asked: Manifest) -> Manifest:
        """The client configuration that reaches the process instead of a Service."""
        bundle = b64encode(self.authority.read_bytes()).decode()
        return {"url": f"https://{LOOPBACK}:{self.port}{asked['service']['path']}", "caBundle": bundle}


def without_processes(objects: Sequence[Manifest], host: WebhookHost) -> Iterator[Manifest]:
    """The objects of an installation, with webhooks that are called at the host."""
    for manifest in objects:
        match manifest["kind"]:
            case kind if kind in _REPLACED:
                continue
            case "CustomResourceDefinition":
                conversion = manifest["spec"].get("conversion", {}).get("webhook")
                if conversion is not None:
                    conversion["clientConfig"] = host.client(conversion["clientConfig"])
            case "MutatingWebhookConfiguration" | "ValidatingWebhookConfiguration":
                for webhook in manifest["webhooks"]:
                    webhook["clientConfig"] = host.client(webhook["clientConfig"])
            case _:
                pass
        yield manifest


async def publish_objects(api: Api, items: Sequence[Manifest]) -> None:
    """All at once, but for the namespace that most of them live in."""
    first = [item for item in items if item["kind"] == "Namespace"]
    for some in (first, [item for item in items if item not in first]):
        async with anyio.create_task_group() as tasks:
            for item in some:
                tasks.start_soon(ensure_object, api, item)


async def ensure_object(api: Api, item: Manifest) -> None:
    """Applied only where it is there already: that costs the API server several times as much, and some kinds are large."""
    collection, name = _collection(item), item["metadata"]["name"]
    try:
        await api.create(collection, item)
    except Conflict:
        await api.apply(f"{collection}/{name}", item)


def _collection(item: Manifest) -> str:
    """Every kind in an installation has a regular plural."""
    version, namespace = item["apiVersion"], item["metadata"].get("namespace")
    root = f"/apis/{version}" if "/" in version else f"/api/{version}"
    where = f"{root}/namespaces/{namespace}" if namespace else root
    return f"{where}/{item['kind'].lower()}s"
