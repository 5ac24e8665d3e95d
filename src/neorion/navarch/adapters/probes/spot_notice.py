"""Notices of clouds to machines that may be taken back: the cloud tells the machine itself, shortly before."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

import anyio

from neorion.capacity.gpu import Remedy
from neorion.keel.base import Duration
from neorion.keel.clock import Clock
from neorion.keel.http.client import FAILURES, HttpTransport, Request, fetch
from neorion.keel.rpc import http_transport
from neorion.keel.telemetry import logger
from neorion.navarch.model import EventKind, HealthEvent
from neorion.navarch.ports import Gpu, Probe

log = logger(__name__)

# Google gives half a minute, Amazon two.
LOOK_EVERY: Final = Duration.of(seconds=5)
# The service stands on the machine's own host.
_TIMEOUT_S: Final = 2.0
# What the control plane takes of a message is more.
_TEXT_MAX: Final = 200


@dataclass(frozen=True, slots=True)
class NoticeEndpoint:
    """A cloud's endpoint for notices. Amazon answers only with a token, which `imds_v2_path` gives."""

    url: str
    path: str
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    imds_v2_path: str = ""
    # The answer of a machine that may stay; another cloud has no answer then.
    stays: str = ""


SERVICES: Final = {
    "aws": NoticeEndpoint(
        "http://169.254.169.254", "/latest/meta-data/spot/instance-action", imds_v2_path="/latest/api/token"
    ),
    "gcp": NoticeEndpoint(
        "http://metadata.google.internal",
        "/computeMetadata/v1/instance/preempted",
        {"Metadata-Flavor": "Google"},
        stays="FALSE",
    ),
}


class SpotNoticeProbe:
    """A probe that also polls its cloud's notice. It is reported once, because a cloud does not withdraw it."""

    def __init__(self, probe: Probe, service: NoticeEndpoint, clock: Clock) -> None:
        self._probe = probe
        self._service = service
        self._clock = clock

    async def gpus(self) -> Sequence[Gpu]:
        return await self._probe.gpus()

    async def watch(self, tell: Callable[[HealthEvent], None], every: Duration) -> None:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._listen, tell)
            await self._probe.watch(tell, every)

    async def self_test(self) -> bool:
        return await self._probe.self_test()

    async def treat(self, remedy: Remedy, gpu: int) -> None:
        await self._probe.treat(remedy, gpu)

    async def _listen(self, tell: Callable[[HealthEvent], None]) -> None:
        transport = http_transport(self._service.url, direct=True)
        silent = False
        try:
            while True:
                try:
                    notice = await self._notice(transport)
                except FAILURES as error:
                    if not silent:
                        log.warning("the cloud's notices cannot be heard", why=type(error).__name__)
                    silent, notice = True, ""
                else:
                    silent = False
                if notice:
                    tell(HealthEvent(self._clock.now(), EventKind.PREEMPTION, message=notice[:_TEXT_MAX]))
                    return
                await self._clock.sleep(LOOK_EVERY)
        finally:
            with anyio.CancelScope(shield=True):
                await transport.aclose()

    async def _notice(self, transport: HttpTransport) -> str:
        service = self._service
        async with asyncio.timeout(_TIMEOUT_S):
            headers = dict(service.headers)
            if service.imds_v2_path:
                ttl = [("X-aws-ec2-metadata-token-ttl-seconds", "60")]
                _, token = await fetch(transport, Request("PUT", service.imds_v2_path, ttl))
                headers["X-aws-ec2-metadata-token"] = token.decode("latin-1")
            head, body = await fetch(transport, Request("GET", service.path, [*headers.items()]))
        text = body.decode(errors="replace").strip()
        return text if head.status == 200 and text != service.stays else ""
