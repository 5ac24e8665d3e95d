"""The calls of the container runtime interface that the engine makes."""

from pathlib import Path
from typing import Final, TypeVar

from neorion.iris.adapters.runtimes.containerd.gen.cri_pb import (
    Container,
    ContainerConfig,
    ContainerFilter,
    ContainerStatus,
    ContainerStatusRequest,
    ContainerStatusResponse,
    CreateContainerRequest,
    CreateContainerResponse,
    ImageSpec,
    ImageStatusRequest,
    ImageStatusResponse,
    ListContainersRequest,
    ListContainersResponse,
    ListPodSandboxRequest,
    ListPodSandboxResponse,
    PodSandbox,
    PodSandboxConfig,
    PodSandboxFilter,
    PullImageRequest,
    PullImageResponse,
    RemovePodSandboxRequest,
    RemovePodSandboxResponse,
    RunPodSandboxRequest,
    RunPodSandboxResponse,
    StartContainerRequest,
    StartContainerResponse,
    StatusRequest,
    StatusResponse,
    StopContainerRequest,
    StopContainerResponse,
    StopPodSandboxRequest,
    StopPodSandboxResponse,
    VersionRequest,
    VersionResponse,
)
from neorion.keel.base import Duration, Error, Invalid, NotFound, Retry, Terminal
from neorion.keel.rpc.grpc_socket import GrpcError, GrpcMessage, GrpcSocket

_SOON: Final = Duration.of(seconds=10)
_USUAL: Final = Duration.of(minutes=2)
# A pull answers once, at its end.
_PULL: Final = Duration.of(hours=2)


M = TypeVar("M", bound=GrpcMessage)


class CriClient:
    """One CRI server. Removing what is gone is no error."""

    def __init__(self, channel: GrpcSocket, socket: Path) -> None:
        self._channel = channel
        self._socket = socket

    async def version(self) -> str:
        answer = await self._runtime("Version", VersionRequest(), VersionResponse, _SOON)
        return f"{answer.runtime_name} {answer.runtime_version}"

    async def config(self) -> str:
        """The server's own configuration, as JSON."""
        answer = await self._runtime("Status", StatusRequest(verbose=True), StatusResponse, _SOON)
        return answer.info.get("config", "{}")

    async def has_image(self, image: str) -> bool:
        request = ImageStatusRequest(image=ImageSpec(image=image))
        return (await self._image("ImageStatus", request, ImageStatusResponse, _USUAL)).image is not None

    async def pull(self, image: str) -> None:
        await self._image(
            "PullImage", PullImageRequest(image=ImageSpec(image=image)), PullImageResponse, _PULL
        )

    async def sandboxes(self, labels: dict[str, str]) -> list[PodSandbox]:
        request = ListPodSandboxRequest(filter=PodSandboxFilter(label_selector=labels))
        return list((await self._runtime("ListPodSandbox", request, ListPodSandboxResponse, _USUAL)).items)

    async def containers(self, labels: dict[str, str]) -> list[Container]:
        request = ListContainersRequest(filter=ContainerFilter(label_selector=labels))
        return list(
            (await self._runtime("ListContainers", request, ListContainersResponse, _USUAL)).containers
        )

    async def status(self, container: str) -> ContainerStatus:
        request = ContainerStatusRequest(container_id=container)
        answer = await self._runtime("ContainerStatus", request, ContainerStatusResponse, _USUAL)
        return answer.status or ContainerStatus(id=container)

    async def run_sandbox(self, config: PodSandboxConfig, handler: str) -> str:
        request = RunPodSandboxRequest(config=config, runtime_handler=handler)
        return (await self._runtime("RunPodSandbox", request, RunPodSandboxResponse, _USUAL)).pod_sandbox_id

    async def create(self, sandbox: str, container: ContainerConfig, config: PodSandboxConfig) -> str:
        request = CreateContainerRequest(pod_sandbox_id=sandbox, config=container, sandbox_config=config)
        return (await self._runtime("CreateContainer", request, CreateContainerResponse, _USUAL)).container_id

    async def start(self, container: str) -> None:
        request = StartContainerRequest(container_id=container)
        await self._runtime("StartContainer", request, StartContainerResponse, _USUAL)

    async def stop(self, container: str, grace_s: int) -> None:
        """Returns when no process of it is left."""
        request = StopContainerRequest(container_id=container, timeout=grace_s)
        try:
            await self._runtime(
                "StopContainer", request, StopContainerResponse, _USUAL + Duration.of(seconds=grace_s)
            )
        except NotFound:
            return

    async def remove_sandbox(self, sandbox: str) -> None:
        """Removes the sandbox with its containers, and ends by force what still runs in them."""
        try:
            stop, remove = (
                StopPodSandboxRequest(pod_sandbox_id=sandbox),
                RemovePodSandboxRequest(pod_sandbox_id=sandbox),
            )
            await self._runtime("StopPodSandbox", stop, StopPodSandboxResponse, _USUAL)
            await self._runtime("RemovePodSandbox", remove, RemovePodSandboxResponse, _USUAL)
        except NotFound:
            return

    async def _runtime(self, method: str, request: GrpcMessage, answer: type[M], limit: Duration) -> M:
        return await self._call(f"RuntimeService/{method}", request, answer, limit)

    async def _image(self, method: str, request: GrpcMessage, answer: type[M], limit: Duration) -> M:
        return await self._call(f"ImageService/{method}", request, answer, limit)

    async def _call(self, method: str, request: GrpcMessage, answer: type[M], limit: Duration) -> M:
        try:
            return await self._channel.call(f"runtime.v1.{method}", request, answer, limit)
        except GrpcError as error:
            raise self._translated(error) from None

    def _translated(self, error: GrpcError) -> Error:
        match error.code:
            case "UNAVAILABLE" | "DEADLINE_EXCEEDED" | "RESOURCE_EXHAUSTED":
                return Retry(
                    "runtime.containerd_away",
                    f"containerd does not answer at {self._socket}: {error.details}.",
                    hint="Start containerd, or name its socket with --runtime-socket.",
                )
            case "UNIMPLEMENTED":
                return Invalid(
                    "runtime.no_cri",
                    f"The containerd at {self._socket} does not serve CRI.",
                    hint='Remove "cri" from disabled_plugins in its configuration.',
                )
            case "NOT_FOUND":
                return NotFound("runtime.containerd_gone", error.details)
            case _:
                return Terminal(
                    "runtime.containerd",
                    f"containerd refuses: {error.details}",
                    hint="Read containerd's log on the machine.",
                )
