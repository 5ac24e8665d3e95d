"""The container engine over Docker's Engine API: one container for each attempt."""

from collections.abc import AsyncGenerator, Sequence
from math import ceil
from typing import Final

import anyio
import anyio.to_thread

from neorion.iris.adapters.runtimes.container.container_poll import ContainerPoll
from neorion.iris.adapters.runtimes.container.engine import ContainerSpec, ContainerState, ContainerStatus
from neorion.iris.adapters.runtimes.container.host_files import HostFiles
from neorion.iris.adapters.runtimes.container.image_pull import ImagePull
from neorion.iris.adapters.runtimes.container.lease import BOOT_ID
from neorion.iris.adapters.runtimes.container.settings import ATTEMPT_LABEL, WORKER_LABEL, EngineSettings
from neorion.iris.adapters.runtimes.docker.docker_api import DockerApi, ListedContainer
from neorion.iris.adapters.runtimes.docker.manifest import container_body, container_name
from neorion.iris.adapters.runtimes.docker.status import end_status
from neorion.iris.model import AttemptId
from neorion.keel.base import Conflict, Duration
from neorion.keel.clock import Clock
from neorion.keel.telemetry import logger

log = logger(__name__)

_CREATED: Final = "created"
_RUNNING: Final = ("running", "paused", "restarting")
_LOG_LINES: Final = 5


class DockerEngine:
    """Containers of one worker, known by its label. `check` comes before everything else."""

    def __init__(self, settings: EngineSettings, api: DockerApi, clock: Clock) -> None:
        self._settings = settings
        self._api = api
        self._files = HostFiles(settings.folder / "mounts", settings.worker)
        self._poll = ContainerPoll(self._find, clock)
        self._image = ImagePull(settings.image, api.has_image, api.pull, clock)
        # Ends do not change, and cost two calls each.
        self._ends: dict[AttemptId, ContainerStatus] = {}

    @property
    def boot(self) -> str:
        return BOOT_ID.read_text().strip()

    def leader_host(self, leader: AttemptId) -> str:
        del leader
        return ""

    async def check(self) -> None:
        """Refuses a server that is not a Docker engine."""
        version = await self._api.negotiate()
        log.info("uses Docker", socket=str(self._settings.socket), api=version)

    async def create(self, spec: ContainerSpec) -> None:
        name = container_name(spec.attempt)
        await self._image.ensure()
        record = await anyio.to_thread.run_sync(self._files.make, spec.attempt)
        try:
            await self._api.create(name, container_body(self._settings, spec, record))
        except Conflict:
            if (await self._api.inspect(name)).status != _CREATED:
                self._poll.expect(spec.attempt)
                return
        try:
            await self._api.start(name)
        except BaseException:
            with anyio.CancelScope(shield=True):
                await self.remove(spec.attempt, Duration(0))
            raise
        self._poll.expect(spec.attempt)

    async def remove(self, attempt: AttemptId, grace: Duration) -> None:
        name = container_name(attempt)
        await self._api.stop(name, ceil(grace.seconds))
        await self._api.remove(name)
        self._ends.pop(attempt, None)
        await anyio.to_thread.run_sync(self._files.remove, attempt)

    async def remove_all(self) -> None:
        """Removes everything of this worker at once, for a worker that does not come back."""
        for one in await self._containers():
            await self.remove(AttemptId(one.labels[ATTEMPT_LABEL]), Duration(0))

    async def changes(self) -> AsyncGenerator[Sequence[ContainerStatus], None]:
        # What the last life of the worker has not started is made again where it is needed.
        for one in await self._containers():
            if one.state == _CREATED:
                await self._api.remove(one.id)
        async for batch in self._poll.changes():
            yield batch

    async def _find(self) -> Sequence[ContainerStatus]:
        return [await self._status(one) for one in await self._containers() if one.state != _CREATED]

    async def _status(self, container: ListedContainer) -> ContainerStatus:
        attempt = AttemptId(container.labels[ATTEMPT_LABEL])
        if container.state in _RUNNING:
            return ContainerStatus(attempt, ContainerState.RUNNING)
        if attempt not in self._ends:
            seen = await self._api.inspect(container.id)
            text = await self._api.log(container.id, _LOG_LINES)
            self._ends[attempt] = end_status(attempt, seen, self._files.record(attempt), text)
        return self._ends[attempt]

    async def _containers(self) -> Sequence[ListedContainer]:
        return await self._api.containers(f"{WORKER_LABEL}={self._settings.worker}")
