"""A controller with its platform: what scale groups ask for really comes."""

import os
import sys
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import anyio
import anyio.to_thread

from neorion.iris.adapters.cluster_file import ClusterFile, caps, check_served, scale_groups
from neorion.iris.adapters.platforms.local import Launch, LocalMachine, LocalPlatform, worker_command
from neorion.iris.app.controller import controller
from neorion.iris.app.parts import ControllerSettings, connect_autoscaler
from neorion.iris.app.platform import LocalWorkers, open_platform
from neorion.iris.app.standby import Leadership, ListenAddress, lead, stand_by
from neorion.iris.controllers.autoscaler import Autoscaler, ControllerEndpoint, worker_shape
from neorion.iris.model import SliceId
from neorion.iris.model.lease import WorkerLeaseTiming
from neorion.iris.model.tokens import token_file
from neorion.iris.ports import Platform
from neorion.keel.base import Invalid
from neorion.keel.clock import SystemClock, SystemIds, system_rng
from neorion.keel.config import SecretFile, loads, make_private, write_secret
from neorion.keel.rpc import PinnedToken, Principal, TokenAuthenticator, pin_of, self_signed
from neorion.keel.run import Loop, LoopTiming, Supervisor

_LOCAL = """
platform: {{ local: {{}} }}
auth: {{ off_on_loopback: {off} }}
controller: {{ local: {{}}, worker_timeout: 5s }}
defaults:
  autoscaler: {{ evaluation_interval: 1s, scale_up_delay: 0, scale_down_delay: 1m, startup_grace_period: 1m }}
scale_groups:
  local:
    accelerator_type: cpu
    accelerator_variant: cpu
    num_vms: 1
    resources: {{ cpu: {cpu}, ram: {ram}, disk: 100GB, gpu_count: 0 }}
    min_slices: {workers}
    max_slices: {workers}
    slice_template: {{ accelerator_type: cpu, accelerator_variant: cpu, num_vms: 1, local: {{}} }}
"""
_ADMIN = frozenset({"admin", "user"})
_GUEST = Principal("guest", _ADMIN)


def local_file(workers: int, *, auth: bool = True) -> ClusterFile:
    """A cluster of this machine's own cores and memory, shared evenly between workers."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    cpu = max(1, (os.cpu_count() or 1))
    text = _LOCAL.format(
        cpu=cpu,
        ram=int(memory * 0.8 / max(1, workers)),
        workers=max(1, workers),
        off=str(not auth).lower(),
    )
    return loads(text, ClusterFile, {}, file="the local cluster")


@dataclass(frozen=True, slots=True)
class RunningCluster:
    """A cluster that runs. `token` is its administrator's, with the pin of the server."""

    address: str
    token: str
    platform: Platform

    async def lose(self, piece: SliceId) -> None:
        """Takes one machine of a slice away, as a power cut would. Only machines that are simulated here can be lost."""
        if not isinstance(self.platform, LocalPlatform):
            raise Invalid(
                "iris.platform",
                "Only simulated machines can be lost on purpose.",
                hint="Use a cluster file with the section platform.local.",
            )
        await self.platform.lose(piece)


@dataclass(frozen=True, slots=True)
class ServeOptions:
    """Options of a controller process. On a leash it ends with standard input, and its slices with it.

    A `standby` begins when no other controller leads any more.
    """

    place: tuple[str, int]
    leash: bool = False
    standby: bool = False


async def run_cluster(
    crew: Supervisor, file: ClusterFile, folder: Path, options: ServeOptions, *, tell: Callable[[str], None]
) -> None:
    """Runs until the crew is to stop."""
    launch = _leashed if options.leash else worker_command
    with anyio.CancelScope() as waiting:
        leads = anyio.Event()
        crew.spawn("iris.waiting", partial(_stop_waiting, crew.stopping, leads, waiting))
        async with cluster(file, folder, options.place, launch, standby=options.standby) as running:
            leads.set()
            tell(running.address)
            if options.leash:
                crew.spawn("iris.leash", lambda: _end_with_stdin(crew))
            await crew.stopping.wait()
            if options.leash:
                await running.platform.shutdown()


async def _stop_waiting(stopping: anyio.Event, leads: anyio.Event, waiting: anyio.CancelScope) -> None:
    """Ends a controller that stands by as soon as it is told to stop."""
    await stopping.wait()
    if not leads.is_set():
        waiting.cancel()


@asynccontextmanager
async def cluster(
    file: ClusterFile,
    folder: Path,
    place: tuple[str, int],
    launch: Launch = worker_command,
    *,
    standby: bool = False,
) -> AsyncGenerator[RunningCluster]:
    """Runs a controller with its platform. On `standby` it begins when no other controller leads any more."""
    check_served(file)
    database = file.storage.database.reveal() if file.storage.database else ""
    if standby and not database:
        raise Invalid(
            "iris.standby_store",
            "A standby needs a database that both controllers reach, and SQLite serves one machine.",
            hint="Write storage.database: postgresql://… in the cluster file.",
        )
    clock = SystemClock()
    folder.mkdir(parents=True, exist_ok=True)
    make_private(folder / name for name in ("arriving", "blobs", "logs", "slices"))
    tls = self_signed(folder / "tls")
    listen = ListenAddress(*place, tls)
    if standby:
        leadership = stand_by(database, listen, clock, SystemIds())
    else:
        leadership = lead(database or folder / "iris.db", listen, clock)
    async with leadership as leading, _leading(file, folder, leading, launch) as running:
        yield running


@asynccontextmanager
async def _leading(
    file: ClusterFile, folder: Path, leadership: Leadership, launch: Launch
) -> AsyncGenerator[RunningCluster]:
    """The controller, once it leads: what lies in the folder is its own now."""
    clock, rng, ids = SystemClock(), system_rng(), SystemIds()
    pin = pin_of(self_signed(folder / "tls"))
    admin, by_hand = (SecretFile(folder / name, ids, pin) for name in ("admin.token", "worker.token"))
    key = SecretFile(folder / "badges.key", ids)
    owners = {
        account.token.reveal(): Principal(user, _ADMIN if account.admin else frozenset({"user"}))
        for user, account in file.auth.users.items()
    }
    owners[admin.value] = Principal("admin", _ADMIN)
    groups = scale_groups(file)
    settings = ControllerSettings(
        folder,
        shapes=[worker_shape(group) for group in groups],
        autoscaled=True,
        authenticator=TokenAuthenticator(owners),
        guest=_GUEST if file.auth.off_on_loopback else None,
        secret=key.value,
        by_hand=by_hand,
        blobs=file.storage.bundle_prefix,
        caps=caps(file),
        keep_jobs_for=file.retention.jobs,
        lease=WorkerLeaseTiming.within(file.controller.worker_timeout),
    )
    async with (
        controller(settings, leadership, clock, rng, ids) as running,
        _token_left(running.address, admin.text),
    ):
        local = LocalWorkers(folder / "slices", running.address, launch)
        async with open_platform(file, local, clock, rng) as platform:
            parts = running.parts
            home = ControllerEndpoint(
                platform.discover_controller(),
                lambda piece: str(PinnedToken(pin, parts.worker_tokens.slice_token(piece))),
            )
            autoscaler = Autoscaler(parts.context, parts.scheduler, parts.reports, platform, groups, home)
            await autoscaler.adopt()
            pace = LoopTiming(file.defaults.autoscaler.evaluation_interval)
            scaling = Loop("iris.scale", autoscaler.tick, pace, clock, rng, running.watch)
            autoscaler.wake.add(scaling.wake)
            connect_autoscaler(parts, autoscaler)
            # A crew of its own, which ends before the platform it listens to.
            async with Supervisor() as loops:
                loops.spawn("iris.scale.watch", autoscaler.watch)
                loops.spawn("iris.scale.work", autoscaler.work)
                loops.loop(scaling)
                try:
                    yield RunningCluster(running.address, admin.text, platform)
                finally:
                    loops.cancel()


@asynccontextmanager
async def _token_left(address: str, secret: str) -> AsyncGenerator[None]:
    """Keeps a token file for clients of the same user on this machine while the controller runs."""
    path = Path(token_file(os.environ, int(address.rpartition(":")[2])))
    path.parent.mkdir(parents=True, exist_ok=True)
    write_secret(path, secret)
    try:
        yield
    finally:
        path.unlink(missing_ok=True)


def _leashed(machine: LocalMachine) -> Sequence[str]:
    return [*worker_command(machine), "--leash"]


async def _end_with_stdin(crew: Supervisor) -> None:
    await anyio.to_thread.run_sync(sys.stdin.read, abandon_on_cancel=True)
    crew.stop()
