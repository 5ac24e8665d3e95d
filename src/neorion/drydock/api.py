"""The few calls drydock itself makes to the API server: by path, and each tried once, because drydock waits in its own way."""

from typing import Any, Final

import msgspec

from neorion.keel.kube.client.transport import HttpRequest, KubeTransport

_MERGE: Final = "application/merge-patch+json"
_APPLY: Final = "application/apply-patch+yaml"

Object = dict[str, Any]


class Api:
    """JSON in and out."""

    def __init__(self, transport: KubeTransport) -> None:
        self._transport = transport

    async def get(self, path: str) -> Object:
        return await self._call(HttpRequest("GET", path))

    async def create(self, path: str, body: Object) -> Object:
        return await self._call(HttpRequest("POST", path, body=msgspec.json.encode(body)))

    async def delete(self, path: str) -> Object:
        return await self._call(HttpRequest("DELETE", path))

    async def merge(self, path: str, body: Object) -> Object:
        """A JSON merge patch."""
        return await self._call(
            HttpRequest("PATCH", path, body=msgspec.json.encode(body), content_type=_MERGE)
        )

    async def apply(self, path: str, body: Object) -> Object:
        """Server-side apply, in drydock's name."""
        whose = (("fieldManager", "drydock"), ("force", "true"))
        return await self._call(
            HttpRequest("PATCH", path, whose, msgspec.json.encode(body), content_type=_APPLY)
        )

    async def _call(self, request: HttpRequest) -> Object:
        answer = await self._transport.once(request)
        return msgspec.json.decode(answer) if answer.startswith(b"{") else {"text": answer.decode()}
