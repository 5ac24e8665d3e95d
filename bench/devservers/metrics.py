"""The success metrics of development servers, as one table: users and servers at once, and logins while replicas are killed.

Real API server, controllers, operator, user controller and two bastions; nodes are simulated. A login is an SSH connection
that is authenticated, through a balancer that asks the other replica when one refuses. NEORION_BENCH_SECONDS says how long
logins go on (60; 600 for the whole soak), NEORION_BENCH_SERVERS how many users there are, each with a server (100).
"""

import json
import os
import random
import socket
import statistics
import subprocess
import sys
import time
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory

import anyio
import asyncssh
from anyio.abc import SocketAttribute, SocketStream

from bench.kit import Report
from neorion.devservers.adapters.install import Overlay, bundle
from neorion.devservers.adapters.users import kubeconfig
from neorion.devservers.model import Phase
from neorion.devservers.model.kube_types import DEVSERVERS, USERS
from neorion.devservers.model.tenancy import OPERATOR_ACCOUNT, SYSTEM_NAMESPACE
from neorion.devservers.model.user import UserPhase
from neorion.drydock.cluster import Cluster
from neorion.drydock.clusters import ClusterManager, ClusterOptions
from neorion.drydock.simulated import SimulatedNodeGroup
from neorion.drydock.storage import publish_storage, storage_part
from neorion.keel.kube import ObjectKey
from neorion.keel.kube.client import Client, connect, read_kubeconfig
from tests.kube.new_kinds import install

SOAK_S = float(os.environ.get("NEORION_BENCH_SECONDS", "60"))
PEOPLE = int(os.environ.get("NEORION_BENCH_SERVERS", "100"))
REPLICAS, LOGINS_PER_S, KILL_EVERY_S, AT_ONCE = 2, 5.0, 30.0, 16
PATIENCE_S = 600.0


@dataclass
class Replica:
    """A bastion of its own port, which is started again when it is killed, as a cluster would."""

    cluster: Cluster
    folder: Path
    name: str
    port: int
    process: "subprocess.Popen[bytes] | None" = None

    def start(self) -> None:
        audit = self.folder / self.name / "audit.jsonl"
        words = ["bastion", "--port", str(self.port), "--audit", str(audit), "--replica", self.name]
        self.process = side(self.cluster.kubeconfig, self.folder, self.name, *words)

    def kill(self) -> None:
        if self.process is not None:
            self.process.kill()
            self.process.wait()


def side(access: Path, folder: Path, name: str, *words: str) -> "subprocess.Popen[bytes]":
    command = [sys.executable, "-m", "neorion.devservers", *words, "--kubeconfig", str(access)]
    with (folder / f"{name}.log").open("ab") as log:
        return subprocess.Popen(command, stdout=log, stderr=log)


@dataclass
class Balancer:
    """What a load balancer does: the next replica that accepts."""

    replicas: list[Replica]
    turn: int = 0

    async def serve(self, client: SocketStream) -> None:
        async with client:
            for _ in self.replicas:
                self.turn += 1
                port = self.replicas[self.turn % len(self.replicas)].port
                try:
                    server = await anyio.connect_tcp("127.0.0.1", port)
                except OSError:
                    continue
                async with server, anyio.create_task_group() as group:
                    group.start_soon(copy, client, server, group.cancel_scope)
                    await copy(server, client, group.cancel_scope)
                return


async def copy(source: SocketStream, target: SocketStream, scope: anyio.CancelScope) -> None:
    try:
        async for data in source:
            await target.send(data)
    except (anyio.BrokenResourceError, anyio.ClosedResourceError):
        pass
    scope.cancel()


@dataclass
class Soak:
    """What was seen. `first` are the seconds of each login, or None where the first try failed."""

    first: list[float | None] = field(default_factory=list[float | None])
    lost: int = 0
    kills: int = 0

    @property
    def times(self) -> list[float]:
        return [one for one in self.first if one is not None]

    def share(self, failed: int) -> str:
        return f"{100 * (1 - failed / max(1, len(self.first))):.3f} % of {len(self.first)}"


async def login(port: int, key: Path, user: str) -> asyncssh.SSHClientConnection:
    return await asyncssh.connect(
        "127.0.0.1", port, username=user, client_keys=[str(key)], known_hosts=None, config=None,
        connect_timeout=20, login_timeout=20,
    )  # fmt: skip


async def one_login(port: int, key: Path, soak: Soak) -> None:
    """A second try is what a person does."""
    began = time.perf_counter()
    for attempt in range(2):
        try:
            (await login(port, key, person(random.randrange(PEOPLE)))).close()
        except (OSError, asyncssh.Error):
            if not attempt:
                soak.first.append(None)
            else:
                soak.lost += 1
        else:
            if not attempt:
                soak.first.append(time.perf_counter() - began)
            return


async def soak(port: int, key: Path, replicas: list[Replica]) -> Soak:
    seen, end = Soak(), time.perf_counter() + SOAK_S
    async with anyio.create_task_group() as group:
        group.start_soon(kill, replicas, seen, end)
        while time.perf_counter() < end:
            group.start_soon(one_login, port, key, seen)
            await anyio.sleep(random.uniform(0.5, 1.5) / LOGINS_PER_S)
    return seen


async def kill(replicas: list[Replica], seen: Soak, end: float) -> None:
    """One after the other, each started again at once."""
    while True:
        await anyio.sleep(KILL_EVERY_S / 2)
        if time.perf_counter() + KILL_EVERY_S / 2 > end:
            return
        replica = replicas[seen.kills % len(replicas)]
        replica.kill()
        replica.start()
        seen.kills += 1
        await anyio.sleep(KILL_EVERY_S / 2)


def person(number: int) -> str:
    return f"person{number}"


async def people(api: Client, key: Path) -> float:
    """Adds them all. Returns the seconds until the last can work."""
    began, line = time.perf_counter(), key.with_suffix(".pub").read_text().strip()
    limit = anyio.CapacityLimiter(AT_ONCE)

    async def add(name: str) -> None:
        async with limit:
            await api.create(USERS, {"metadata": {"name": name}, "spec": {"keys": [line]}})

    async with anyio.create_task_group() as group:
        for number in range(PEOPLE):
            group.start_soon(add, person(number))
    with anyio.fail_after(PATIENCE_S):
        while any(one.status.phase is not UserPhase.PROVISIONED for one in (await api.list(USERS)).items):  # noqa: ASYNC110 -- an API server
            await anyio.sleep(0.5)
    return time.perf_counter() - began


async def servers(api: Client) -> list[float]:
    """A server for each, all at once. Returns the seconds until each runs."""
    limit, began = anyio.CapacityLimiter(AT_ONCE), dict[ObjectKey, float]()

    async def create(user: str) -> None:
        spec = {"flavor": "cpu-small", "persistentHomeSize": "1Gi", "lifecycle": {"autoShutdown": False}}
        key = ObjectKey(f"dev-{user}", "mydev")
        async with limit:
            began[key] = time.perf_counter()
            await api.create(
                DEVSERVERS, {"metadata": {"name": key.name, "namespace": key.namespace}, "spec": spec}
            )

    taken: dict[ObjectKey, float] = {}
    async with anyio.create_task_group() as group:
        for number in range(PEOPLE):
            group.start_soon(create, person(number))
        with anyio.fail_after(PATIENCE_S):
            while len(taken) < PEOPLE:
                await anyio.sleep(0.25)
                for one in (await api.list(DEVSERVERS)).items:
                    if one.status.phase is Phase.RUNNING and one.meta.key not in taken:
                        taken[one.meta.key] = time.perf_counter() - began[one.meta.key]
    return list(taken.values())


async def at_once(port: int, key: Path) -> float:
    """Everybody is logged in at the same time. Returns the seconds until the last is."""
    began = time.perf_counter()
    async with AsyncExitStack() as stack:

        async def enter(user: str) -> None:
            await stack.enter_async_context(await login(port, key, user))

        async with anyio.create_task_group() as group:
            for number in range(PEOPLE):
                group.start_soon(enter, person(number))
        return time.perf_counter() - began


@asynccontextmanager
async def installation(folder: Path) -> AsyncGenerator[tuple[Cluster, Client]]:
    nodes = ClusterOptions(simulated=(SimulatedNodeGroup(PEOPLE // 50 + 2),))
    async with (
        ClusterManager.of().cluster("bench-devservers-metrics", nodes) as cluster,
        connect(read_kubeconfig([cluster.kubeconfig]).cluster(), "bench-people/1") as api,
    ):
        async with cluster.api() as plain:
            await publish_storage(plain)
        await cluster.ensure(storage_part(cluster.layout, cluster.pki))
        await install(cluster, api, bundle(Overlay.LOCAL))
        config = folder / "operator.yaml"
        config.write_text("namespace: devservers-system\nport: 0\n")
        # The guards let its own account alone do what the operator does.
        token = await api.token(OPERATOR_ACCOUNT, SYSTEM_NAMESPACE)
        own = folder / "operator.kubeconfig"
        own.write_text(json.dumps(kubeconfig(OPERATOR_ACCOUNT, api.transport.cluster, token)))
        sides = [
            side(own, folder, "operator", "operator", "--config", str(config)),
            side(cluster.kubeconfig, folder, "user-controller", "user-controller"),
        ]
        try:
            yield cluster, api
        finally:
            for one in sides:
                one.kill()
                one.wait()


async def logins(cluster: Cluster, folder: Path, key: Path) -> tuple[float, Soak]:
    """Everybody at once, and then some all the time while replicas are killed."""
    replicas = [Replica(cluster, folder, f"bastion-{one}", free_port()) for one in range(REPLICAS)]
    balancer = await anyio.create_tcp_listener(local_host="127.0.0.1")
    port = int(balancer.extra(SocketAttribute.local_port))  # noqa: S610 -- anyio's, no SQL
    everybody, seen = 0.0, Soak()
    try:
        for one in replicas:
            one.start()
        async with balancer, anyio.create_task_group() as group:
            group.start_soon(balancer.serve, Balancer(replicas).serve)
            await until_both(replicas)
            everybody = await at_once(port, key)
            seen = await soak(port, key, replicas)
            group.cancel_scope.cancel()
    finally:
        for one in replicas:
            one.kill()
    return everybody, seen


async def table() -> list[tuple[str, str, str]]:
    with TemporaryDirectory() as name:
        folder = Path(name)
        key = folder / "key"
        await anyio.run_process(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(key)])
        async with installation(folder) as (cluster, api):
            provisioned, created = await people(api, key), await servers(api)
            everybody, seen = await logins(cluster, folder, key)
            return rows(provisioned, created, everybody, seen)
    raise AssertionError("the installation has ended before its table")


def rows(
    provisioned: float, created: list[float], everybody: float, seen: Soak
) -> list[tuple[str, str, str]]:
    failed = len(seen.first) - len(seen.times)
    slowest = statistics.quantiles(seen.times, n=100)[98] if len(seen.times) > 1 else 0.0
    return [
        (f"availability, {seen.kills} kills in {SOAK_S:.0f} s, first try", seen.share(failed), "99.9 %"),
        ("availability, with a second try", seen.share(seen.lost), "99.9 %"),
        ("SSH connection time, p50", f"{statistics.median(seen.times):.2f} s", "2 s"),
        ("SSH connection time, p99", f"{slowest:.2f} s", "2 s"),
        ("server creation time, the slowest", f"{max(created):.1f} s", "120 s"),
        ("users logged in at once", f"{PEOPLE} after {everybody:.1f} s", "100"),
        ("servers that run at once", f"{len(created)}", "100"),
        ("users provisioned, the last", f"{provisioned:.1f} s", ""),
    ]


async def until_both(replicas: list[Replica]) -> None:
    with anyio.fail_after(120):
        for one in replicas:
            while True:
                try:
                    async with await anyio.connect_tcp("127.0.0.1", one.port):
                        break
                except OSError:
                    await anyio.sleep(0.2)


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return int(listener.getsockname()[1])


def run(report: Report) -> None:
    del report  # No peer has these figures.
    measured = anyio.run(table)
    print(f"\n| metric | measured [load {os.getloadavg()[0]:.1f}] | goal |\n|---|---|---|")
    for row in measured:
        print("| " + " | ".join(row) + " |")
