"""Operators on a real API server that dies, forgets, goes silent and is fought over; and replicas that die."""

import signal
import subprocess
import sys
from collections.abc import AsyncGenerator, Generator
from contextlib import ExitStack, asynccontextmanager, contextmanager

import anyio
import pytest

from neorion.drydock.cluster import Cluster
from neorion.drydock.testing import namespace as fresh_namespace
from neorion.keel.base import Duration
from neorion.keel.clock import SystemClock, system_rng
from neorion.keel.kube import Added, MergePatch, Modified, ObjectKey
from neorion.keel.kube.client import Client, connect, read_kubeconfig
from neorion.keel.kube.control import TENURE, InformerFactory
from neorion.keel.kube.core import CONFIG_MAP, LEASE
from tests.contracts.kube_api import WIDGET
from tests.contracts.kube_control import until
from tests.keel.kube.control.widgets import Surroundings, WidgetOperator, widget
from tests.kube.conftest import defined
from tests.kube.proxy import Wire, wired

pytestmark = [pytest.mark.anyio, pytest.mark.usefixtures("cut_connections")]

CLOCK, RNG = SystemClock(), system_rng()


@pytest.fixture
async def direct(own_cluster: Cluster) -> AsyncGenerator[Client]:
    """As the test itself sees the cluster, whatever happens to the operator's wire."""
    async with connect(read_kubeconfig([own_cluster.kubeconfig]).cluster(), "people/1") as client:
        await defined(client)
        yield client


@pytest.fixture
async def room(own_cluster: Cluster) -> AsyncGenerator[str]:
    async with fresh_namespace(own_cluster) as name:
        yield name


@asynccontextmanager
async def operating(own_cluster: Cluster, room: str) -> AsyncGenerator[tuple[Wire, WidgetOperator]]:
    stopping = anyio.Event()
    async with (
        wired(read_kubeconfig([own_cluster.kubeconfig]).cluster()) as (wire, cluster),
        connect(cluster, "widgets/1") as api,
        anyio.create_task_group() as group,
    ):
        program = WidgetOperator(Surroundings(api, CLOCK, RNG, "one"), namespace=room)
        group.start_soon(program.operator.run, stopping)
        yield wire, program
        stopping.set()


def like_wanted(program: WidgetOperator, *names: str) -> bool:
    """Whether there are these widgets, and each has its config and says so."""
    sizes = {config.meta.name: config.data.get("size") for config in program.configs}
    return {one.meta.name for one in program.widgets} == set(names) and all(
        one.status.ready == one.spec.size and sizes.get(one.meta.name) == str(one.spec.size)
        for one in program.widgets
    )


async def test_a_server_that_is_killed_and_comes_back_has_forgotten_and_nothing_is_missed(
    own_cluster: Cluster, direct: Client, room: str
):
    async with operating(own_cluster, room) as (wire, program):
        for name in ("stays", "goes", "changes"):
            await direct.create(WIDGET, widget(name, 1, room))
        await until(
            lambda: like_wanted(program, "stays", "goes", "changes"), program.widgets, program.configs
        )
        # The operator is cut off while the world goes on, and the server that it comes back to knows no past.
        wire.shut = True
        wire.cut()
        await direct.delete(WIDGET, "goes", room)
        await direct.delete(CONFIG_MAP, "stays", room)
        await direct.patch(WIDGET, "changes", MergePatch({"spec": {"size": 2}}), room)
        await own_cluster.stop("kube-apiserver")
        await own_cluster.start_control_plane()
        await direct.create(WIDGET, widget("comes", 3, room))
        wire.shut = False
        await until(
            lambda: like_wanted(program, "stays", "changes", "comes"),
            program.widgets,
            program.configs,
            patience_s=60,
        )
        # One watch may be enough to see all that, while another still waits for its next try; health tells no event.
        with anyio.fail_after(60):
            while program.operator.health():
                await CLOCK.sleep(Duration.of(ms=50))


async def test_a_watch_that_goes_silent_is_noticed_and_resumed(
    own_cluster: Cluster, direct: Client, room: str
):
    async with (
        wired(read_kubeconfig([own_cluster.kubeconfig]).cluster()) as (wire, cluster),
        connect(cluster, "widgets/1") as api,
        anyio.create_task_group() as group,
    ):
        informers = InformerFactory(api, CLOCK, RNG, silence=Duration.of(seconds=2))
        widgets = informers.of(WIDGET, room)
        group.start_soon(informers.run)
        await informers.wait_synced()
        wire.silence()
        await direct.create(WIDGET, widget("unheard", 1, room))
        await until(lambda: len(widgets) == 1, widgets, patience_s=30)
        group.cancel_scope.cancel()


async def test_a_storm_of_conflicts_ends_in_what_was_wanted_last(
    own_cluster: Cluster, direct: Client, room: str
):
    async def edit(number: int) -> None:
        for turn in range(10):
            body = MergePatch(
                {"spec": {"size": (number * 10 + turn) % 100}, "metadata": {"labels": {"by": str(number)}}}
            )
            await direct.patch(WIDGET, "fought-over", body, room)
            await direct.patch(
                CONFIG_MAP, "fought-over", MergePatch({"data": {"size": f"vandal {turn}"}}), room
            )

    async with operating(own_cluster, room) as (_, program):
        await direct.create(WIDGET, widget("fought-over", 1, room))
        await until(lambda: like_wanted(program, "fought-over"), program.widgets, program.configs)
        async with anyio.create_task_group() as group:
            for number in range(8):
                group.start_soon(edit, number)
        last = await direct.get(WIDGET, "fought-over", room)

        def calm() -> bool:
            seen = program.widgets.get(ObjectKey(room, "fought-over"))
            return bool(seen and seen.meta.generation == last.meta.generation) and like_wanted(
                program, "fought-over"
            )

        await until(calm, program.widgets, program.configs, patience_s=60)


@contextmanager
def replica(own_cluster: Cluster, room: str, identity: str) -> Generator["subprocess.Popen[bytes]"]:
    command = [sys.executable, "-m", "tests.kube.replica", str(own_cluster.kubeconfig), room, identity]
    process = subprocess.Popen(command)
    try:
        yield process
    finally:
        process.kill()
        process.wait()


async def holder_is(direct: Client, room: str, names: set[str]) -> str:
    """Waits until one of these holds the lease."""
    async with direct.watch(LEASE, room) as events:
        async for event in events:
            if isinstance(event, Added | Modified) and event.object.spec.holder_identity in names:
                return event.object.spec.holder_identity
    raise AssertionError


async def test_a_holder_that_is_killed_is_replaced_and_the_work_goes_on(
    own_cluster: Cluster, direct: Client, room: str
):
    with ExitStack() as processes, anyio.fail_after(120):
        started = {name: processes.enter_context(replica(own_cluster, room, name)) for name in ("one", "two")}
        holder = await holder_is(direct, room, {"one", "two"})
        await direct.create(WIDGET, widget("before", 1, room))
        await ready(direct, room, "before")
        other = ({"one", "two"} - {holder}).pop()
        began = CLOCK.monotonic()
        started[holder].kill()
        await holder_is(direct, room, {other})
        # It waits out the lease that it saw last, and no longer than it takes to notice.
        assert TENURE.stop_after.seconds < CLOCK.monotonic() - began
        await direct.create(WIDGET, widget("after", 2, room))
        await ready(direct, room, "after")
        # A planned end gives the lease back at once.
        started[other].send_signal(signal.SIGTERM)
        await holder_is(direct, room, {""})
        assert await anyio.to_thread.run_sync(started[other].wait) == 0


async def ready(direct: Client, room: str, name: str) -> None:
    async with direct.watch(WIDGET, room) as events:
        async for event in events:
            if isinstance(event, Added | Modified):
                one = event.object
                if one.meta.name == name and one.status.ready == one.spec.size:
                    return
