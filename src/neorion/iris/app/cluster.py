"""A controller with its platform: what scale groups ask for really comes."""

import os
import sys
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import anyio
import anyio.to_thread

from neorion.iris.adapters.cluster_file import ClusterFile, caps, check_served, scale_groups
from neorion.iris.adapters.platforms.local import Launch, LocalMachine, LocalPlatform, worker_command
from neorion.iris.app.controller import controller
from neorion.iris.app.parts import ControllerSettings, connect_autoscaler
from neorion.iris.app.platform import LocalPlace, open_platform
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
            raise Invalid("iris.platform", "Only simulated machines can be lost on purpose.")
        await self.platform.lose(piece)


async def run_cluster(
    crew: Supervisor,
    file: ClusterFile,
    folder: Path,
    place: tuple[str, int],
    *,
    tell: Callable[[str], None],
    leash: bool,
) -> None:
    """Runs until the crew is to stop; on a leash, until standard input ends too, and its slices end with it."""
    async with cluster(file, folder, place, _leashed if leash else worker_command) as running:
        tell(running.address)
        if leash:
            crew.spawn("iris.leash", lambda: _end_with_stdin(crew))
        await crew.stopping.wait()
        if leash:
            await running.platform.shutdown()


@asynccontextmanager
async def cluster(
    file: ClusterFile, folder: Path, place: tuple[str, int], launch: Launch = worker_command
) -> AsyncGenerator[RunningCluster]:
    check_served(file)
    clock, rng, ids = SystemClock(), system_rng(), SystemIds()
    folder.mkdir(parents=True, exist_ok=True)
    make_private(folder / name for name in ("arriving", "blobs", "logs", "slices"))
    tls = self_signed(folder / "tls")
    pin = pin_of(tls)
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
        *place,
        shapes=[worker_shape(group) for group in groups],
        autoscaled=True,
        tls=tls,
        authenticator=TokenAuthenticator(owners),
        guest=_GUEST if file.auth.off_on_loopback else None,
        secret=key.value,
        by_hand=by_hand,
        database=file.storage.database.reveal() if file.storage.database else "",
        blobs=file.storage.bundle_prefix,
        caps=caps(file),
        keep_jobs_for=file.retention.jobs,
        lease=WorkerLeaseTiming.within(file.controller.worker_timeout),
    )
    async with controller(settings, clock, rng, ids) as running, _token_left(running.address, admin.text):
        local = LocalPlace(folder / "slices", running.address, launch)
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
    """For clients of the same user on this machine, while there is somebody to show it to."""
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
