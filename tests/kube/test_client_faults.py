"""A real API server that dies, comes back, goes silent, throttles, and no longer knows a token."""

import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import anyio
import pytest
from aiohttp import web
from msgspec import structs

from neorion.drydock.cluster import Cluster
from neorion.drydock.layout import PortOffset
from neorion.drydock.pki import Pki, Subject
from neorion.keel.base import Conflict, Deadline, Duration, Instant, Retry, Unauthenticated
from neorion.keel.clock import Clock, SystemClock
from neorion.keel.http.connection_pool import CONNECTIONS_MAX
from neorion.keel.kube import Added, MergePatch, ObjectMeta, ResourceExpired
from neorion.keel.kube.client import (
    Client,
    ClientCertificate,
    StaticToken,
    TokenFile,
    connect,
    read_kubeconfig,
    transport,
)
from neorion.keel.kube.core import (
    CONFIG_MAP,
    LEASE,
    SERVICE_ACCOUNT,
    ConfigMap,
    Lease,
    LeaseSpec,
    ServiceAccount,
)
from tests.contracts.kube_api import config, take, take_initial
from tests.keel.kube.stage import LeapClock, staged
from tests.kube.wire_trouble import Wire, wire_to

pytestmark = [pytest.mark.anyio, pytest.mark.usefixtures("cut_connections")]

NAMESPACE = "default"


@asynccontextmanager
async def client_of(cluster: Cluster) -> AsyncGenerator[Client]:
    async with connect(read_kubeconfig([cluster.kubeconfig]).cluster(), "faults/1") as client:
        yield client


@asynccontextmanager
async def over_a_wire(cluster: Cluster) -> AsyncGenerator[tuple[Client, Wire]]:
    async with wire_to(cluster.layout.port(PortOffset.API)) as wire:
        target = structs.replace(read_kubeconfig([cluster.kubeconfig]).cluster(), server=wire.address)
        async with connect(target, "faults/1") as client:
            yield client, wire


async def test_a_client_outlives_its_server(own_cluster: Cluster):
    async with client_of(own_cluster) as client:
        before = await client.create(CONFIG_MAP, config(NAMESPACE, "outlives"))
        async with client.watch(CONFIG_MAP, NAMESPACE, since=before.meta.resource_version) as events:
            await own_cluster.stop("kube-apiserver")
            with pytest.raises(Deadline) as cut:
                await anext(events)
        assert cut.value.code == "kube.lost"
        with pytest.raises(Retry) as away:
            await client.create(CONFIG_MAP, config(NAMESPACE, "never"))
        assert away.value.code == "kube.unreachable"
        await own_cluster.start_control_plane()
        await client.create(CONFIG_MAP, config(NAMESPACE, "after"))
        # A server that has just started may have forgotten the version; what is there it knows.
        async with client.watch(CONFIG_MAP, NAMESPACE) as events:
            assert {"outlives", "after"} <= set(await take_initial(events))


async def _compact(cluster: Cluster, version: str) -> None:
    """etcd forgets everything before that version."""
    layout, pki = cluster.layout, cluster.pki
    chain, key = pki.certificate("etcd-client").read_text(), pki.key("etcd-client").read_text()
    etcd = structs.replace(
        read_kubeconfig([cluster.kubeconfig]).cluster(),
        server=f"https://127.0.0.1:{layout.port(PortOffset.ETCD)}",
        certificate=ClientCertificate(chain, key),
    )
    body = json.dumps({"revision": version, "physical": True}).encode()
    async with connect(etcd) as client:
        await client.transport.call(transport.HttpRequest("POST", "/v3/kv/compaction", body=body))


async def test_a_version_that_was_compacted_is_expired(own_cluster: Cluster):
    async with client_of(own_cluster) as client:
        first = await client.create(CONFIG_MAP, config(NAMESPACE, "compacted"))
        last = await client.patch(CONFIG_MAP, "compacted", MergePatch({"data": {"a": "2"}}), NAMESPACE)
        await _compact(own_cluster, last.meta.resource_version)
        # The server itself remembers for longer than its store.
        await own_cluster.stop("kube-apiserver")
        await own_cluster.start_control_plane()
        with pytest.raises(ResourceExpired):
            async with client.watch(CONFIG_MAP, NAMESPACE, since=first.meta.resource_version) as events:
                await anext(events)
        async with client.watch(CONFIG_MAP, NAMESPACE) as events:
            assert "compacted" in await take_initial(events)


async def test_a_server_that_begins_no_watch_with_a_list_is_mirrored_all_the_same(own_cluster: Cluster):
    _, server, *_ = own_cluster.control_plane()
    # As Kubernetes 1.33 comes.
    await own_cluster.ensure(replace(server, argv=(*server.argv, "--feature-gates=WatchList=false")))
    async with own_cluster.api() as api:
        await own_cluster.until(server, lambda: api.get("/readyz"))
    async with client_of(own_cluster) as client:
        await client.create(CONFIG_MAP, config(NAMESPACE, "there"))
        async with client.watch(CONFIG_MAP, NAMESPACE) as events:
            assert "there" in await take_initial(events)
            new = await client.create(CONFIG_MAP, config(NAMESPACE, "new"))
            assert await take(events, 1) == [Added(new)]
    await own_cluster.start_control_plane()


async def test_a_watch_whose_wire_is_cut_goes_on_where_it_was(own_cluster: Cluster):
    async with client_of(own_cluster) as other, over_a_wire(own_cluster) as (client, wire):
        since = (await client.list(CONFIG_MAP, NAMESPACE)).version
        async with client.watch(CONFIG_MAP, NAMESPACE, since=since) as events:
            wire.cut()
            with pytest.raises(Deadline) as cut:
                await anext(events)
        assert cut.value.code == "kube.lost"
        missed = await other.create(CONFIG_MAP, config(NAMESPACE, "missed"))
        async with client.watch(CONFIG_MAP, NAMESPACE, since=since) as events:
            assert await take(events, 1) == [Added(missed)]


async def test_a_server_that_restarts_is_waited_for(own_cluster: Cluster, monkeypatch: pytest.MonkeyPatch):
    patient = structs.replace(transport.BACKOFF, attempts=500, most=Duration.of(ms=200))
    monkeypatch.setattr(transport, "BACKOFF", patient)
    async with client_of(own_cluster) as client, anyio.create_task_group() as group:
        await own_cluster.stop("kube-apiserver")
        group.start_soon(own_cluster.start_control_plane)
        # The namespace may be read before the server's caches are full; what is read is true.
        assert (await client.list(LEASE, NAMESPACE)).version


async def test_a_broken_wire_hides_a_read_and_tells_of_a_write(own_cluster: Cluster):
    async with over_a_wire(own_cluster) as (client, wire):
        made = await client.create(CONFIG_MAP, config(NAMESPACE, "wire"))
        wire.silence()
        async with anyio.create_task_group() as group:

            async def write() -> None:
                with pytest.raises(Deadline) as unknown:
                    await client.patch(CONFIG_MAP, "wire", MergePatch({"data": {"a": "1"}}), NAMESPACE)
                assert unknown.value.code == "kube.lost"

            async def read() -> None:
                assert (await client.get(CONFIG_MAP, "wire", NAMESPACE)).meta.uid == made.meta.uid

            group.start_soon(write)
            group.start_soon(read)
            # Both are on their way when nothing moves any more.
            await anyio.wait_all_tasks_blocked()
            wire.cut()
            wire.speak()


async def test_a_server_that_says_nothing_is_not_waited_for_for_ever(
    own_cluster: Cluster, monkeypatch: pytest.MonkeyPatch
):
    async with over_a_wire(own_cluster) as (client, wire):
        await client.list(CONFIG_MAP, NAMESPACE)
        wire.silence()
        # Only while nothing is said: a busy server may well take that long for a true answer.
        with monkeypatch.context() as impatient:
            impatient.setattr(transport, "REQUEST_S_MAX", 0.5)
            with pytest.raises(Deadline) as slow:
                await client.list(CONFIG_MAP, NAMESPACE)
        assert slow.value.code == "kube.slow"
        wire.speak()
        await client.list(CONFIG_MAP, NAMESPACE)


async def test_a_revoked_token_is_replaced_by_the_one_in_the_file(own_cluster: Cluster, tmp_path: Path):
    file = tmp_path / "token"
    account = ServiceAccount(ObjectMeta(name="worker", namespace=NAMESPACE))
    async with client_of(own_cluster) as admin:
        await admin.create(SERVICE_ACCOUNT, account)
        token = await admin.token("worker", NAMESPACE)
        assert token.expires > SystemClock().now() + Duration.of(minutes=50)
        assert token.text not in repr(token)
        file.write_text(token.text)
        target = structs.replace(admin.transport.cluster, certificate=None, source=TokenFile(file))
        async with connect(target) as worker:
            await worker.read("/version")
            # The account of the old token is gone, and with it the token.
            await admin.delete(SERVICE_ACCOUNT, "worker", NAMESPACE)
            await admin.create(SERVICE_ACCOUNT, account)
            await _until_refused(structs.replace(target, source=StaticToken(token.text)))
            file.write_text((await admin.token("worker", NAMESPACE)).text)
            await worker.read("/version")


async def _until_refused(target) -> None:
    """The server remembers for some seconds that a token was good."""
    async with connect(target) as late:
        while True:
            try:
                await late.read("/version")
            except Unauthenticated:
                return
            await SystemClock().sleep(Duration.of(ms=200))


class _LongAgo(LeapClock):
    def now(self) -> Instant:
        return Instant(0)


def _issue(cluster: Cluster, folder: Path, clock: Clock) -> None:
    """The administrator's certificate and key, new, as that clock has it."""
    folder.mkdir(exist_ok=True)
    pki = Pki(folder, clock)
    for mine, theirs in ((pki.certificate, cluster.pki.certificate), (pki.key, cluster.pki.key)):
        mine("ca").write_bytes(theirs("ca").read_bytes())
        mine("admin").unlink(missing_ok=True)
    pki.issue("admin", Subject("renewing", ("system:masters",)))


async def test_a_certificate_that_expired_is_replaced_by_the_one_in_the_file(
    own_cluster: Cluster, tmp_path: Path
):
    _issue(own_cluster, tmp_path, _LongAgo())
    pki = Pki(tmp_path, SystemClock())
    files = (pki.certificate("admin"), pki.key("admin"))
    own = structs.replace(
        read_kubeconfig([own_cluster.kubeconfig]).cluster(),
        certificate=ClientCertificate(files[0].read_text(), files[1].read_text(), files),
    )
    async with connect(own) as client:
        with pytest.raises(Unauthenticated):
            await client.list(CONFIG_MAP, NAMESPACE)
        _issue(own_cluster, tmp_path, SystemClock())
        await client.list(CONFIG_MAP, NAMESPACE)
        async with client.watch(CONFIG_MAP, NAMESPACE) as events:
            await take_initial(events)


async def test_a_throttled_client_waits_until_it_is_let_in(own_cluster: Cluster):
    refusals = 2

    async def guard(request: web.Request) -> web.Response:
        nonlocal refusals
        body = await request.read()
        if refusals:
            refusals -= 1
            return web.Response(status=429, headers={"Retry-After": "1"})
        passed = transport.HttpRequest(request.method, request.path, (), body, request.content_type)
        return web.Response(body=await admin.transport.call(passed), content_type="application/json")

    clock = LeapClock()
    async with client_of(own_cluster) as admin, staged(guard, clock) as client:
        made = await client.create(CONFIG_MAP, config(NAMESPACE, "throttled"))
        assert made == await admin.get(CONFIG_MAP, "throttled", NAMESPACE)
    assert [wait >= 1 for wait in clock.slept] == [True, True]


async def test_in_a_storm_of_conflicts_no_write_is_lost(own_cluster: Cluster):
    async with client_of(own_cluster) as client:
        storm = Lease(ObjectMeta(name="storm", namespace=NAMESPACE), LeaseSpec(lease_transitions=0))
        await client.create(LEASE, storm)
        conflicts = 0

        async def add_one() -> None:
            nonlocal conflicts
            while True:
                found = await client.get(LEASE, "storm", NAMESPACE)
                count = (found.spec.lease_transitions or 0) + 1
                try:
                    await client.replace(LEASE, Lease(found.meta, LeaseSpec(lease_transitions=count)))
                except Conflict:
                    conflicts += 1
                else:
                    return

        async with anyio.create_task_group() as group:
            for _ in range(40):
                group.start_soon(add_one)
        assert (await client.get(LEASE, "storm", NAMESPACE)).spec.lease_transitions == 40
        assert conflicts > 0


async def test_many_requests_at_once_wait_for_connections_and_all_arrive(own_cluster: Cluster):
    async with client_of(own_cluster) as client:
        async with anyio.create_task_group() as group:
            for number in range(3 * CONNECTIONS_MAX):
                group.start_soon(
                    client.create, CONFIG_MAP, ConfigMap(ObjectMeta(name=f"m-{number}", namespace=NAMESPACE))
                )
        names = {one.meta.name for one in (await client.list(CONFIG_MAP, NAMESPACE)).items}
    assert {f"m-{number}" for number in range(3 * CONNECTIONS_MAX)} <= names
