"""The API itself: discovery, and one metric of one object. Only the API server's aggregator may ask."""

import re
import ssl
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any, Final

from aiohttp import web

from neorion.drydock.addons.custom_metrics import GROUP, NAME, PREFIX, VERSION
from neorion.drydock.api import Api
from neorion.drydock.pki import Pki
from neorion.keel.base import Error
from neorion.keel.clock import Clock

_ROOT: Final = f"/apis/{GROUP}/{VERSION}"
_KINDS: Final = {"services": "Service", "pods": "Pod"}
# As Kubernetes writes quantities.
_VALUE: Final = re.compile(r"[0-9]{1,15}m?")


@asynccontextmanager
async def serving(api: Api, clock: Clock, pki: Pki, address: tuple[str, int]) -> AsyncGenerator[None]:
    """Serves for as long as the context lasts."""
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cafile=str(pki.certificate("front-ca")))
    context.verify_mode = ssl.CERT_REQUIRED
    context.load_cert_chain(pki.certificate(NAME), pki.key(NAME))

    async def metric(request: web.Request) -> web.Response:
        return await _metric(request, api, clock)

    app = web.Application()
    app.router.add_get(_ROOT, _discovery)
    app.router.add_get(f"{_ROOT}/namespaces/{{namespace}}/{{resource}}/{{name}}/{{metric}}", metric)
    runner = web.AppRunner(app)
    await runner.setup()
    try:
        await web.TCPSite(runner, *address, ssl_context=context).start()
        yield
    finally:
        await runner.cleanup()


async def _discovery(_: web.Request) -> web.Response:
    # Metrics are named by annotations, so there is no list of them: a star stands for all.
    resources = [
        {
            "name": f"{resource}/*",
            "singularName": "",
            "namespaced": True,
            "kind": "MetricValueList",
            "verbs": ["get"],
        }
        for resource in _KINDS
    ]
    return web.json_response(
        {
            "kind": "APIResourceList",
            "apiVersion": "v1",
            "groupVersion": f"{GROUP}/{VERSION}",
            "resources": resources,
        }
    )


async def _metric(request: web.Request, api: Api, clock: Clock) -> web.Response:
    part = request.match_info
    resource, namespace, name, metric = (part[key] for key in ("resource", "namespace", "name", "metric"))
    if resource not in _KINDS:
        return _not_found(f"there are no metrics of {resource}")
    try:
        found = await api.get(f"/api/v1/namespaces/{namespace}/{resource}/{name}")
    except Error as error:
        return _not_found(error.sentence)
    value = found["metadata"].get("annotations", {}).get(f"{PREFIX}/{metric}", "")
    if not _VALUE.fullmatch(value):
        return _not_found(f"{resource} {name} has no metric {metric}")
    described = {"kind": _KINDS[resource], "namespace": namespace, "name": name, "apiVersion": "v1"}
    moment = f"{str(clock.now())[:19]}Z"
    item: dict[str, Any] = {
        "describedObject": described,
        "metric": {"name": metric},
        "timestamp": moment,
        "value": value,
    }
    return web.json_response(
        {"kind": "MetricValueList", "apiVersion": f"{GROUP}/{VERSION}", "metadata": {}, "items": [item]}
    )


def _not_found(message: str) -> web.Response:
    status = {"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "NotFound", "code": 404}
    return web.json_response({**status, "message": message}, status=404)
