"""The engines that run containers on this machine: opened for a worker, and found again once the worker is gone."""

from collections.abc import AsyncGenerator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Final, Protocol

import anyio
import msgspec

from neorion.iris.adapters.runtimes.container.engine import ContainerEngine
from neorion.iris.adapters.runtimes.container.settings import EngineName, EngineSettings
from neorion.keel.base import Duration, Error
from neorion.keel.cli.kit import require_extra
from neorion.keel.clock import Clock
from neorion.keel.telemetry import logger

log = logger(__name__)

_FOLDER: Final = "containers"
_RECORD: Final = "engine.json"
_REMOVAL_MOST: Final = Duration.of(seconds=20)
_AGAIN: Final = Duration.of(ms=200)


class MachineEngine(ContainerEngine, Protocol):
    """An engine whose containers do not end with their worker by themselves."""

    async def remove_all(self) -> None:
        """Removes everything of the worker at once."""
        ...


class _Record(msgspec.Struct, frozen=True):
    engine: EngineName
    socket: str


def containers_folder(worker: Path) -> Path:
    """The folder of a worker's container runtime, below the worker's own."""
    return worker / _FOLDER


def open_engine(settings: EngineSettings, clock: Clock) -> AbstractAsyncContextManager[MachineEngine]:
    """Writes down which engine it is, so that `remove_containers` finds it."""
    settings.folder.mkdir(parents=True, exist_ok=True)
    record = _Record(settings.engine, str(settings.socket))
    (settings.folder / _RECORD).write_bytes(msgspec.json.encode(record))
    return (
        _containerd(settings, clock) if settings.engine is EngineName.CONTAINERD else _docker(settings, clock)
    )


async def remove_containers(worker: Path, clock: Clock) -> None:
    """Removes the containers of a worker that does not come back. Without an engine there is nothing to do."""
    folder = containers_folder(worker)
    try:
        record = msgspec.json.decode((folder / _RECORD).read_bytes(), type=_Record)
    except (FileNotFoundError, msgspec.DecodeError):
        return
    settings = EngineSettings(folder, record.engine, Path(record.socket), image="")
    error: Error | None = None
    with anyio.move_on_after(_REMOVAL_MOST.seconds):
        while True:
            try:
                async with open_engine(settings, clock) as engine:
                    await engine.remove_all()
            except Error as failed:
                # A request of the worker may still be under way, such as the start of a container.
                error = failed
                await clock.sleep(_AGAIN)
            else:
                return
    if error is not None:
        log.failure("containers are left behind", error, socket=record.socket)


@asynccontextmanager
async def _containerd(settings: EngineSettings, clock: Clock) -> AsyncGenerator[MachineEngine]:
    require_extra("containerd")
    from neorion.iris.adapters.runtimes.containerd import (  # noqa: PLC0415 -- gRPC is heavy, and an extra
        ContainerdEngine,
        CriClient,
    )
    from neorion.keel.rpc.grpc_socket import GrpcSocket  # noqa: PLC0415 -- as above

    async with GrpcSocket(settings.socket) as channel:
        engine = ContainerdEngine(settings, CriClient(channel, settings.socket), clock)
        await engine.check()
        yield engine


@asynccontextmanager
async def _docker(settings: EngineSettings, clock: Clock) -> AsyncGenerator[MachineEngine]:
    from neorion.iris.adapters.runtimes.docker import DockerApi, DockerEngine  # noqa: PLC0415 -- as above
    from neorion.keel.http.client import HttpTransport  # noqa: PLC0415 -- as above

    transport = HttpTransport(f"unix://{settings.socket}")
    try:
        engine = DockerEngine(settings, DockerApi(transport, str(settings.socket)), clock)
        await engine.check()
        yield engine
    finally:
        await transport.aclose()
