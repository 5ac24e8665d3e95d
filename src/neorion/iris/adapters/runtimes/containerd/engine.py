"""The container engine over CRI: a sandbox with one container for each attempt."""

import os
from collections.abc import AsyncGenerator, Sequence
from math import ceil
from pathlib import Path
from typing import Final

import anyio
import anyio.to_thread

from neorion.iris.adapters.runtimes.container.container_poll import ContainerPoll
from neorion.iris.adapters.runtimes.container.engine import ContainerSpec, ContainerStatus
from neorion.iris.adapters.runtimes.container.engine import ContainerState as EngineState
from neorion.iris.adapters.runtimes.container.host_files import HostFiles
from neorion.iris.adapters.runtimes.container.image_pull import ImagePull
from neorion.iris.adapters.runtimes.container.lease import BOOT_ID
from neorion.iris.adapters.runtimes.container.settings import ATTEMPT_LABEL, EngineSettings, HostMount
from neorion.iris.adapters.runtimes.containerd.cri_client import CriClient
from neorion.iris.adapters.runtimes.containerd.gen.cri_pb import Container, ContainerState, PodSandbox
from neorion.iris.adapters.runtimes.containerd.gpus import GpuSupport, gpu_access, gpu_support
from neorion.iris.adapters.runtimes.containerd.manifest import LOG, container_config, labels, sandbox_config
from neorion.iris.adapters.runtimes.containerd.status import end_status, last_line
from neorion.iris.model import AttemptId
from neorion.keel.base import Duration, Invalid
from neorion.keel.clock import Clock
from neorion.keel.telemetry import logger

log = logger(__name__)

# Every Pod of a kubelet has it.
_KUBELET_LABEL: Final = "io.kubernetes.pod.uid"
_CDI_FOLDERS: Final = (Path("/etc/cdi"), Path("/var/run/cdi"))
_LOG_BYTES: Final = 4096


class ContainerdEngine:
    """Containers of one worker, known by its label. `check` comes before everything else."""

    def __init__(self, settings: EngineSettings, client: CriClient, clock: Clock) -> None:
        self._settings = settings
        self._client = client
        self._files = HostFiles(settings.folder / "mounts", settings.worker)
        self._poll = ContainerPoll(self._find, clock)
        self._image = ImagePull(settings.image, client.has_image, client.pull, clock)
        self._gpus = GpuSupport()
        # Ends do not change, and cost a call each.
        self._ends: dict[str, ContainerStatus] = {}

    @property
    def boot(self) -> str:
        return BOOT_ID.read_text().strip()

    def leader_host(self, leader: AttemptId) -> str:
        del leader
        return ""

    async def check(self) -> None:
        """Refuses a server that cannot run attempts, or that would not leave them alone."""
        version = await self._client.version()
        if any(_KUBELET_LABEL in sandbox.labels for sandbox in await self._client.sandboxes({})):
            raise Invalid(
                "runtime.kubelet_containerd",
                f"The containerd at {self._settings.socket} belongs to a kubelet, which removes what others start.",
                hint="Start another containerd for iris, and name its socket with --runtime-socket.",
            )
        self._gpus = gpu_support(await self._client.config(), has_cdi_spec=_has_cdi_spec())
        log.info("uses containerd", socket=str(self._settings.socket), version=version)

    async def create(self, spec: ContainerSpec) -> None:
        sandbox = await self._sandbox(spec.attempt)
        if sandbox is not None:
            if await self._started(spec.attempt):
                self._poll.expect(spec.attempt)
                return
            await self._client.remove_sandbox(sandbox.id)
        gpus = gpu_access(spec.gpus, self._gpus, os.path.exists)
        await self._image.ensure()
        mounts = await anyio.to_thread.run_sync(self._make_files, spec)
        config = sandbox_config(self._settings, spec.attempt, self._files.folder(spec.attempt))
        made = await self._client.run_sandbox(config, gpus.handler)
        try:
            container = container_config(self._settings, spec, mounts, gpus)
            await self._client.start(await self._client.create(made, container, config))
        except BaseException:
            with anyio.CancelScope(shield=True):
                await self.remove(spec.attempt, Duration(0))
            raise
        self._poll.expect(spec.attempt)

    def _make_files(self, spec: ContainerSpec) -> Sequence[HostMount]:
        """A sandbox has 64 MiB of shared memory, too little for work on GPUs."""
        mounts = [self._files.make(spec.attempt)]
        return [*mounts, self._files.make_shared_memory(spec.attempt)] if spec.resources.gpus else mounts

    async def remove(self, attempt: AttemptId, grace: Duration) -> None:
        for container in await self._started(attempt):
            if container.state is ContainerState.CONTAINER_RUNNING:
                await self._client.stop(container.id, ceil(grace.seconds))
            self._ends.pop(container.id, None)
        if (sandbox := await self._sandbox(attempt)) is not None:
            await self._client.remove_sandbox(sandbox.id)
        await anyio.to_thread.run_sync(self._files.remove, attempt)

    async def remove_all(self) -> None:
        """Removes everything of this worker at once, for a worker that does not come back."""
        for sandbox in await self._client.sandboxes(labels(self._settings.worker)):
            await self.remove(AttemptId(sandbox.labels[ATTEMPT_LABEL]), Duration(0))

    async def changes(self) -> AsyncGenerator[Sequence[ContainerStatus], None]:
        await self._remove_unstarted()
        async for batch in self._poll.changes():
            yield batch

    async def _remove_unstarted(self) -> None:
        """Removes what the last life of the worker has not started; it is made again where it is needed."""
        started = {one.pod_sandbox_id for one in await self._started()}
        for sandbox in await self._client.sandboxes(labels(self._settings.worker)):
            if sandbox.id not in started:
                await self._client.remove_sandbox(sandbox.id)

    async def _find(self) -> Sequence[ContainerStatus]:
        return [await self._status(one) for one in await self._started()]

    async def _status(self, container: Container) -> ContainerStatus:
        attempt = AttemptId(container.labels[ATTEMPT_LABEL])
        if container.state is ContainerState.CONTAINER_RUNNING:
            return ContainerStatus(attempt, EngineState.RUNNING)
        if container.id not in self._ends:
            seen = await self._client.status(container.id)
            text = last_line(await anyio.to_thread.run_sync(self._log, attempt))
            self._ends[container.id] = end_status(attempt, seen, self._files.record(attempt), text)
        return self._ends[container.id]

    async def _started(self, attempt: AttemptId | None = None) -> Sequence[Container]:
        found = await self._client.containers(labels(self._settings.worker, attempt))
        return [one for one in found if one.state is not ContainerState.CONTAINER_CREATED]

    async def _sandbox(self, attempt: AttemptId) -> PodSandbox | None:
        return next(iter(await self._client.sandboxes(labels(self._settings.worker, attempt))), None)

    def _log(self, attempt: AttemptId) -> bytes:
        """The end of the runner's own log."""
        try:
            with (self._files.folder(attempt) / LOG).open("rb") as file:
                file.seek(max(0, file.seek(0, os.SEEK_END) - _LOG_BYTES))
                return file.read()
        except FileNotFoundError:
            return b""


def _has_cdi_spec() -> bool:
    """Looks for what NVIDIA's toolkit writes and containerd reads."""
    files = (
        path for folder in _CDI_FOLDERS for path in folder.glob("*") if path.suffix in (".yaml", ".json")
    )
    return any("nvidia.com/gpu" in path.read_text(errors="replace") for path in files)
