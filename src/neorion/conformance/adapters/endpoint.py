"""A service outside of the API server, asked over HTTP: a monitoring system or a gateway."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any, Final

import msgspec

from neorion.conformance.adapters.recording import ANSWER_BYTES_MAX, RecordingApi
from neorion.keel.base import Error, Terminal
from neorion.keel.kube.client import ClusterConfig, connect
from neorion.keel.kube.client.transport import HttpRequest, KubeTransport

_AGENT: Final = "neorion-conformance"


class Endpoint:
    """One HTTP server. Every answer is recorded."""

    def __init__(self, api: RecordingApi, transport: KubeTransport, url: str) -> None:
        self._api = api
        self._transport = transport
        self._url = url

    async def json(self, path: str, **params: str) -> dict[str, Any]:
        try:
            answer = await self._transport.once(HttpRequest("GET", path, tuple(params.items())))
        except Error as error:
            self._api.note(
                "request",
                {"verb": "get", "url": self._url + path, "code": error.code, "message": error.sentence},
            )
            raise
        if len(answer) > ANSWER_BYTES_MAX:
            raise Terminal("conformance.too_large", f"The answer of {self._url} is too large.")
        try:
            found = msgspec.json.decode(answer, type=dict[str, Any])
        except (msgspec.DecodeError, msgspec.ValidationError):
            raise Terminal("conformance.no_json", f"The answer of {self._url} is not JSON.") from None
        self._api.note(
            "request",
            {"verb": "get", "url": self._url + path, "params": params, "status": 200, "answer": found},
        )
        return found


@asynccontextmanager
async def endpoint(api: RecordingApi, url: str) -> AsyncGenerator[Endpoint]:
    async with connect(ClusterConfig(url.rstrip("/")), _AGENT) as client:
        yield Endpoint(api, client.transport, url.rstrip("/"))
