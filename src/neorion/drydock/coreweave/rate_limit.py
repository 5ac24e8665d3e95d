"""A pool that is asked too often: the API server answers 429 to whoever changes it.

The server itself finds out who is concerned and asks here only about those. So there is nothing to decide, and a pool whose
fault is being taken away is never in the way of that.
"""

import ssl
from base64 import b64encode
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

from aiohttp import web

from neorion.drydock.coreweave.crd import GROUP, VERSION
from neorion.drydock.coreweave.decide import Fault
from neorion.drydock.coreweave.nodepool_types import FAULT
from neorion.drydock.layout import LOOPBACK

# In seconds: long enough that a client which does not listen to it is noticed.
RETRY_AFTER_S: Final = 1
_NAME: Final = f"limit.{GROUP}"


def limiting(port: int, authority: Path) -> dict[str, Any]:
    """What tells the API server whom to ask about which changes."""

    def limited(side: str) -> str:
        return f"{side}.metadata.?annotations['{FAULT}'].orValue('') == '{Fault.RATE_LIMIT}'"

    bundle = b64encode(authority.read_bytes()).decode()
    webhook = {
        "name": _NAME,
        "clientConfig": {"url": f"https://{LOOPBACK}:{port}/", "caBundle": bundle},
        "rules": [
            {
                "apiGroups": [GROUP],
                "apiVersions": [VERSION],
                "operations": ["UPDATE"],
                "resources": ["nodepools"],
            }
        ],
        "matchConditions": [
            {"name": side.lower(), "expression": limited(side)} for side in ("object", "oldObject")
        ],
        "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
        # Without its player there is no limit either.
        "failurePolicy": "Ignore",
        "timeoutSeconds": 5,
    }
    return {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingWebhookConfiguration",
        "metadata": {"name": _NAME},
        "webhooks": [webhook],
    }


@asynccontextmanager
async def refusing(port: int, certificate: Path, key: Path) -> AsyncGenerator[None]:
    """Says no to everything it is asked about, for as long as the context lasts."""
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(certificate, key)
    runner = web.ServerRunner(web.Server(_refuse))
    await runner.setup()
    try:
        await web.TCPSite(runner, LOOPBACK, port, ssl_context=context).start()
        yield
    finally:
        await runner.cleanup()


async def _refuse(request: web.BaseRequest) -> web.Response:
    review: dict[str, Any] = await request.json()
    status = {
        "code": 429,
        "reason": "TooManyRequests",
        "message": "this pool is changed too often",
        "details": {"retryAfterSeconds": RETRY_AFTER_S},
    }
    answer = {"uid": review["request"]["uid"], "allowed": False, "status": status}
    return web.json_response({"apiVersion": review["apiVersion"], "kind": review["kind"], "response": answer})
