"""The clusters of this machine: creates, finds and removes them."""

import os
import shutil
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

import anyio
import msgspec
from anyio import to_thread

from neorion.drydock.addons import ADDONS, resume_addons
from neorion.drydock.binaries import BinaryCache, Tell, build_missing, ignore_progress
from neorion.drydock.cluster import Cluster
from neorion.drydock.cluster_addons import install_addons, set_up_bridge
from neorion.drydock.control import PROGRAMS
from neorion.drydock.coreweave import resume_coreweave, start_coreweave
from neorion.drydock.dns import DNS_PROGRAMS
from neorion.drydock.host import UNDO, UndoLog, end, locked
from neorion.drydock.kueue import resume_kueue, start_kueue
from neorion.drydock.layout import Layout, state_folder
from neorion.drydock.node import ensure_nodes
from neorion.drydock.simulated import SimulatedNodeGroup, check_simulated, ensure_simulated, resume_kwok
from neorion.drydock.slots import CLAIMS, claim_slot, is_anothers, keep_slot
from neorion.keel.base import Invalid, NotFound, did_you_mean, is_name
from neorion.keel.clock import Clock, SystemClock

_RECORD: Final = "cluster.json"
DEFAULT_NAME: Final = "drydock"


class ClusterRecord(msgspec.Struct, frozen=True):
    """The properties of a cluster that its name does not determine."""

    slot: int
    networked: bool = False
    # The folder of ready programs that it was created with.
    binaries: str = ""


@dataclass(frozen=True, slots=True)
class ClusterOptions:
    """The parts that a cluster should have beside its control plane. Further existing parts stay."""

    simulated: tuple[SimulatedNodeGroup, ...] = ()
    # Real nodes.
    nodes: int = 0
    # Prepared for real nodes, even without any yet.
    networked: bool = False
    kueue: bool = False
    # A simulation of CoreWeave's NodePools.
    coreweave: bool = False
    # By name: metrics adapters, autoscalers and similar.
    addons: tuple[str, ...] = ()

    @property
    def needs_network(self) -> bool:
        """True if the cluster needs a network: for real nodes, and for add-ons that serve pods from this machine."""
        return self.networked or self.nodes > 0 or any(ADDONS[name].networked for name in self.addons)

    @property
    def programs(self) -> list[str]:
        simulated = ["kwok"] if self.simulated or self.coreweave else []
        real = [*DNS_PROGRAMS, "kubelet"] if self.needs_network else []
        added = [program for name in self.addons for program in ADDONS[name].programs]
        return [*PROGRAMS, *simulated, *real, *(["kueue"] if self.kueue else []), *added]


NO_EXTRAS: Final = ClusterOptions()


@dataclass(frozen=True, slots=True)
class ClusterManager:
    """All clusters: one folder each."""

    folder: Path
    shelf: BinaryCache
    clock: Clock
    claims: Path = CLAIMS

    @classmethod
    def of(cls, env: Mapping[str, str] | None = None, binaries: Path | None = None) -> "ClusterManager":
        """The clusters of the user."""
        env = os.environ if env is None else env
        return cls(state_folder(env), BinaryCache.of(env, binaries), SystemClock())

    def names(self) -> list[str]:
        """The names of all clusters, incomplete ones included."""
        return sorted(path.name for path in self.folder.glob("*") if path.is_dir() and is_name(path.name))

    def clusters(self) -> list[Cluster]:
        return [self.find(name) for name in self.names() if self._record(name) is not None]

    def find(self, name: str = DEFAULT_NAME) -> Cluster:
        record = self._record(name)
        if record is None:
            raise NotFound(
                "drydock.no_cluster",
                f'The cluster "{name}" does not exist.',
                hint=did_you_mean(name, self.names()) or f"Create it: neorion drydock up --name {name}",
            )
        layout = Layout(self.folder / name, record.slot, record.networked)
        return Cluster(layout, self.shelf.with_given(record.binaries), self.clock)

    @asynccontextmanager
    async def exclusive(self, name: str = DEFAULT_NAME) -> AsyncGenerator[Cluster]:
        """Yields a cluster that no other process changes meanwhile."""
        self.find(name)
        async with locked(self.folder / name):
            yield self.find(name)

    async def up(
        self, name: str = DEFAULT_NAME, wishes: ClusterOptions = NO_EXTRAS, tell: Tell = ignore_progress
    ) -> Cluster:
        """Creates a cluster, or restarts missing parts of it. Builds missing programs."""
        _require_name(name)
        known = self._record(name)
        shelf = self.shelf.with_given(known.binaries if known else "")
        await build_missing(shelf, wishes.programs, tell)
        async with locked(self.folder / name):
            record = self._claim_slot(name)
            self.save(name, msgspec.structs.replace(record, binaries=str(shelf.given or "")))
            if record.networked or wishes.needs_network:
                await self._networked(name)
            cluster = self.find(name)
            await cluster.start_api_server(tell)
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(cluster.start_controllers, tell)
                tasks.start_soon(_give_nodes, cluster, wishes, tell)
                tasks.start_soon(_give_simulated, cluster, wishes, tell)
                tasks.start_soon(_give_kueue, cluster, wishes, tell)
            await resume_addons(cluster, wishes.addons, tell)
            return cluster

    def _claim_slot(self, name: str) -> ClusterRecord:
        """Returns the cluster's record, with its slot claimed."""
        folder, record = self.folder / name, self._record(name)
        ledger = UndoLog(folder)
        if record is None:
            return ClusterRecord(claim_slot(self.claims, folder, ledger))
        keep_slot(self.claims, folder, record.slot, ledger)
        return record

    async def _networked(self, name: str) -> None:
        """Creates the cluster's network, also for a cluster that was created without one."""
        known = self.find(name)
        layout = replace(known.layout, networked=True)
        await set_up_bridge(Cluster(layout, known.shelf, known.clock))
        if not known.layout.networked:
            # The API server moves to the bridge, and its clients read its address only at their start.
            await end(layout.folder)
            self.save(name, ClusterRecord(layout.slot, networked=True, binaries=str(known.shelf.given or "")))

    async def down(self, name: str = DEFAULT_NAME) -> None:
        """Removes a cluster completely, whatever its state. Safe to repeat."""
        # A path would name a folder that is not a cluster's, and an empty name the folder of all.
        _require_name(name)
        folder = self.folder / name
        if not folder.exists():
            # Perhaps removed by hand: its processes can still be found.
            await end(folder)
            return
        async with locked(folder):
            await end(folder)
            ledger, record = UndoLog(folder), self._record(name)
            if record is not None and is_anothers(self.claims, folder, record.slot):
                ledger.forget_all_but("claim")
            await ledger.undo_all(UNDO)
            await to_thread.run_sync(shutil.rmtree, folder)

    @asynccontextmanager
    async def cluster(
        self, name: str = DEFAULT_NAME, wishes: ClusterOptions = NO_EXTRAS
    ) -> AsyncGenerator[Cluster]:
        """Creates a cluster for the duration of the context."""
        try:
            yield await self.up(name, wishes)
        finally:
            await self.down(name)

    def save(self, name: str, record: ClusterRecord) -> None:
        partial = self.folder / name / f"{_RECORD}.part"
        partial.write_bytes(msgspec.json.encode(record))
        partial.replace(self.folder / name / _RECORD)

    def _record(self, name: str) -> ClusterRecord | None:
        try:
            return msgspec.json.decode((self.folder / name / _RECORD).read_bytes(), type=ClusterRecord)
        except (FileNotFoundError, NotADirectoryError):
            return None


def _require_name(name: str) -> None:
    if not is_name(name):
        raise Invalid(
            "drydock.name", f'"{name}" cannot be a name.', hint="Use small letters, digits and hyphens."
        )


async def _give_nodes(cluster: Cluster, wishes: ClusterOptions, tell: Tell) -> None:
    if cluster.layout.networked:
        await install_addons(cluster, tell)
        await ensure_nodes(cluster, wishes.nodes, tell)


async def _give_simulated(cluster: Cluster, wishes: ClusterOptions, tell: Tell) -> None:
    await resume_kwok(cluster, tell)
    if cluster.layout.networked:
        await check_simulated(cluster)
    for group in wishes.simulated:
        tell(f"adding simulated nodes: {group.count} {group.type}")
        await ensure_simulated(cluster, group)
    if wishes.coreweave:
        tell("starting the simulation of CoreWeave")
        await start_coreweave(cluster)
    else:
        await resume_coreweave(cluster)


async def _give_kueue(cluster: Cluster, wishes: ClusterOptions, tell: Tell) -> None:
    if wishes.kueue:
        tell("starting Kueue")
        await start_kueue(cluster, tell)
    else:
        await resume_kueue(cluster, tell)
