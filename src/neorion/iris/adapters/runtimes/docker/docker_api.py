"""The calls of Docker's Engine API that the engine makes."""

import json
from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import quote, urlencode

import anyio
import msgspec
from msgspec import Struct

from neorion.keel.base import Conflict, Denied, Duration, Error, Invalid, NotFound, Retry, Terminal
from neorion.keel.http.client import FAILURES, Request, Transport, fetch

_USUAL: Final = Duration.of(minutes=2)
_PULL: Final = Duration.of(hours=2)
# A pull tells of its progress in many lines.
_ANSWER_BYTES_MAX: Final = 64 << 20
_FRAME_HEAD: Final = 8


class ListedContainer(Struct, frozen=True, rename="pascal"):
    """A container in a list."""

    id: str
    state: str
    labels: dict[str, str] = {}


class ContainerEnd(Struct, frozen=True, rename="pascal"):
    """The state of a container."""

    status: str
    exit_code: int = 0
    error: str = ""
    out_of_memory: bool = msgspec.field(default=False, name="OOMKilled")


class _Inspected(Struct, frozen=True, rename="pascal"):
    state: ContainerEnd


class _Refusal(Struct, frozen=True):
    message: str = ""


class _Progress(Struct, frozen=True):
    error: str = ""


class DockerApi:
    """One engine. Stopping and removing what is gone is no error."""

    def __init__(self, transport: Transport, server: str) -> None:
        self._transport = transport
        self._server = server
        self._version = ""

    async def negotiate(self) -> str:
        """Asks the engine for its newest version of the API, which all calls then use."""
        request = Request("GET", "/_ping")
        with anyio.move_on_after(_USUAL.seconds):
            try:
                head, _ = await fetch(self._transport, request)
            except FAILURES as error:
                raise self._unreachable(error) from None
            self._version = head.headers.get("api-version", "")
        if not self._version:
            raise Invalid(
                "runtime.not_docker",
                f"The server at {self._server} is not a Docker engine.",
                hint="Name the engine's socket with --runtime-socket.",
            )
        return self._version

    async def has_image(self, image: str) -> bool:
        try:
            await self._call("GET", f"/images/{quote(image, safe='/:@')}/json")
        except NotFound:
            return False
        return True

    async def pull(self, image: str) -> None:
        name, tag = split_image(image)
        answer = await self._call("POST", "/images/create", {"fromImage": name, "tag": tag}, limit=_PULL)
        for line in filter(None, answer.splitlines()):
            if error := msgspec.json.decode(line, type=_Progress).error:
                raise Terminal(
                    "runtime.docker_pull",
                    f"Docker cannot pull {image}: {error}",
                    hint="Check the name of the image and the access to its registry.",
                )

    async def containers(self, label: str) -> list[ListedContainer]:
        """Every container with this label, also those that have ended."""
        query = {"all": "true", "filters": json.dumps({"label": [label]})}
        answer = await self._call("GET", "/containers/json", query)
        return msgspec.json.decode(answer, type=list[ListedContainer])

    async def create(self, name: str, body: Mapping[str, Any]) -> None:
        """Raises Conflict where the name is taken."""
        await self._call("POST", "/containers/create", {"name": name}, body)

    async def start(self, name: str) -> None:
        await self._call("POST", f"/containers/{name}/start")

    async def inspect(self, name: str) -> ContainerEnd:
        answer = await self._call("GET", f"/containers/{name}/json")
        return msgspec.json.decode(answer, type=_Inspected).state

    async def log(self, name: str, lines: int) -> str:
        """The last lines of its standard output and error."""
        query = {"stdout": "true", "stderr": "true", "tail": str(lines)}
        return unframed(await self._call("GET", f"/containers/{name}/logs", query)).decode(errors="replace")

    async def stop(self, name: str, grace_s: int) -> None:
        try:
            limit = _USUAL + Duration.of(seconds=grace_s)
            await self._call("POST", f"/containers/{name}/stop", {"t": str(grace_s)}, limit=limit)
        except NotFound:
            return

    async def remove(self, name: str) -> None:
        """Ends by force what still runs."""
        try:
            await self._call("DELETE", f"/containers/{name}", {"force": "true", "v": "true"})
        except (NotFound, Conflict):
            # A conflict says that another removal is under way.
            return

    async def _call(
        self,
        method: str,
        path: str,
        query: Mapping[str, str] | None = None,
        body: Mapping[str, Any] | None = None,
        limit: Duration = _USUAL,
    ) -> bytes:
        target = f"/v{self._version}{path}" + (f"?{urlencode(query)}" if query else "")
        headers = [("Content-Type", "application/json")] if body is not None else []
        request = Request(method, target, headers, msgspec.json.encode(body) if body is not None else b"")
        try:
            with anyio.fail_after(limit.seconds):
                head, answer = await fetch(self._transport, request, _ANSWER_BYTES_MAX)
        except FAILURES as error:
            raise self._unreachable(error) from None
        if head.status >= 400:
            raise _refusal(head.status, answer)
        return answer

    def _unreachable(self, error: Exception) -> Retry:
        return Retry(
            "runtime.docker_away",
            f"Docker does not answer at {self._server}: {error}.",
            hint="Start Docker, or name its socket with --runtime-socket.",
        )


def split_image(image: str) -> tuple[str, str]:
    """The name of an image, and its tag or digest."""
    name, at, digest = image.partition("@")
    if at:
        return name, digest
    folder, slash, last = image.rpartition("/")
    last, _, tag = last.partition(":")
    return f"{folder}{slash}{last}", tag or "latest"


def unframed(data: bytes) -> bytes:
    """The text of a log: Docker cuts it into frames with a head of eight bytes, which ends in the size."""
    parts = list[bytes]()
    while len(data) >= _FRAME_HEAD:
        end = _FRAME_HEAD + int.from_bytes(data[4:_FRAME_HEAD], "big")
        parts.append(data[_FRAME_HEAD:end])
        data = data[end:]
    return b"".join(parts)


def _refusal(status: int, answer: bytes) -> Error:
    try:
        message = msgspec.json.decode(answer, type=_Refusal).message
    except msgspec.DecodeError:
        message = answer.decode(errors="replace")[:300]
    sentence = f"Docker refuses: {message}"
    match status:
        case 401 | 403:
            return Denied(
                "runtime.docker_denied", sentence, hint="Let the worker's user use Docker's socket."
            )
        case 404:
            return NotFound("runtime.docker_not_found", sentence)
        case 409:
            return Conflict("runtime.docker_conflict", sentence)
        case _:
            return Terminal("runtime.docker", sentence, hint="Read Docker's log on the machine.")
