"""The few calls drydock itself makes to the API server."""

import json
import ssl
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

import aiohttp

from neorion.keel.base import Conflict, Duration, NotFound, Retry, Terminal

_TIMEOUT: Final = Duration.of(seconds=15)
# What a person can read of an answer that was meant for a program.
_WORDS_MAX: Final = 400

Object = dict[str, Any]


class Api:
    """JSON in and out, as the holder of a client certificate."""

    def __init__(self, server: str, authority: Path, certificate: Path, key: Path) -> None:
        self._server = server
        self._tls = ssl.create_default_context(cafile=str(authority))
        self._tls.load_cert_chain(certificate, key)
        self._session: aiohttp.ClientSession | None = None

    async def __aenter__(self) -> Self:
        timeout = aiohttp.ClientTimeout(total=_TIMEOUT.seconds)
        self._session = aiohttp.ClientSession(
            self._server, connector=aiohttp.TCPConnector(ssl=self._tls), timeout=timeout
        )
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._session is not None  # noqa: S101 -- set on entering
        await self._session.close()

    async def get(self, path: str) -> Object:
        return await self._call("GET", path)

    async def create(self, path: str, body: Object) -> Object:
        return await self._call("POST", path, body)

    async def delete(self, path: str) -> Object:
        return await self._call("DELETE", path)

    async def merge(self, path: str, body: Object) -> Object:
        """A JSON merge patch."""
        return await self._call("PATCH", path, body, "application/merge-patch+json")

    async def apply(self, path: str, body: Object) -> Object:
        """Server-side apply, in drydock's name."""
        return await self._call(
            "PATCH", f"{path}?fieldManager=drydock&force=true", body, "application/apply-patch+yaml"
        )

    async def _call(
        self, method: str, path: str, body: Object | None = None, form: str = "application/json"
    ) -> Object:
        assert self._session is not None  # noqa: S101 -- set on entering
        data = None if body is None else json.dumps(body)
        try:
            async with self._session.request(
                method, path, data=data, headers={"Content-Type": form}
            ) as answer:
                text = await answer.text()
        except (aiohttp.ClientError, TimeoutError) as error:
            raise Retry(
                "drydock.api_unreachable",
                f"The API server does not answer: {error or type(error).__name__}.",
                hint="See how it is: neorion drydock status",
            ) from error
        if answer.ok:
            return json.loads(text) if text.startswith("{") else {"text": text}
        raise _refusal(answer.status, f"{method} {path}", text)


def _refusal(status: int, call: str, text: str) -> Conflict | NotFound | Retry | Terminal:
    try:
        words = str(json.loads(text)["message"])
    except (ValueError, KeyError, TypeError):
        words = text
    sentence = f"{call} was refused with {status}: {words[:_WORDS_MAX]}"
    match status:
        case 404:
            return NotFound("drydock.api_not_found", sentence)
        case 409:
            return Conflict("drydock.api_conflict", sentence)
        case 429 | 500 | 502 | 503 | 504:
            return Retry("drydock.api_busy", sentence)
        case _:
            return Terminal("drydock.api_refused", sentence)
