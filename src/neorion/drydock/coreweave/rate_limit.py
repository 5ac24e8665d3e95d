"""The rate limit of the NodePool API: the API server answers 429.

It is for pools with the fault alone, and the server itself selects them. Changes of such a pool are all refused. New pools come
through at a few per second, as from an API that is limited.
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
from neorion.keel.clock import Clock

# In seconds: long enough that a client which does not listen to it is noticed.
RETRY_AFTER_S: Final = 1
CREATES_PER_SECOND: Final = 25
_NAME: Final = f"limit.{GROUP}"


def limiting(port: int, authority: Path) -> dict[str, Any]:
    """The webhook by which the API server asks about pools that are limited."""

    def limited(side: str) -> str:
        # A new pool has no former state.
        return (
            f"{side} == null || {side}.metadata.?annotations['{FAULT}'].orValue('') == '{Fault.RATE_LIMIT}'"
        )

    bundle = b64encode(authority.read_bytes()).decode()
    webhook = {
        "name": _NAME,
        "clientConfig": {"url": f"https://{LOOPBACK}:{port}/", "caBundle": bundle},
        "rules": [
            {
                "apiGroups": [GROUP],
                "apiVersions": [VERSION],
                "operations": ["CREATE", "UPDATE"],
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
async def limit_rate(port: int, certificate: Path, key: Path, clock: Clock) -> AsyncGenerator[None]:
    """Refuses changes and limits new pools, for as long as the context lasts."""
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(certificate, key)
    runner = web.ServerRunner(web.Server(_Limit(clock).answer))
    await runner.setup()
    try:
        await web.TCPSite(runner, LOOPBACK, port, ssl_context=context).start()
        yield
    finally:
        await runner.cleanup()


class _Limit:
    """Lets so many new pools through in each second."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._second = 0
        self._created = 0

    async def answer(self, request: web.BaseRequest) -> web.Response:
        review: dict[str, Any] = await request.json()
        asked = review["request"]
        allowed = asked["operation"] == "CREATE" and self._may_create()
        status = {
            "code": 429,
            "reason": "TooManyRequests",
            "message": "NodePools are changed too often",
            "details": {"retryAfterSeconds": RETRY_AFTER_S},
        }
        answer = {"uid": asked["uid"], "allowed": allowed, **({} if allowed else {"status": status})}
        return web.json_response(
            {"apiVersion": review["apiVersion"], "kind": review["kind"], "response": answer}
        )

    def _may_create(self) -> bool:
        second = int(self._clock.monotonic())
        if second != self._second:
            self._second, self._created = second, 0
        self._created += 1
        return self._created <= CREATES_PER_SECOND
