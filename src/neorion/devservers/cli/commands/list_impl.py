"""The command `devctl list`, in a module of its own so that it starts fast."""

from neorion.devservers.cli.options import ClusterSelector
from neorion.devservers.cli.session import run_with_api
from neorion.devservers.cli.tables import ServerRecord, servers_table
from neorion.devservers.client import DevServerApi
from neorion.devservers.client.api import map_errors
from neorion.devservers.model.kube_types import DEVSERVERS
from neorion.keel.cli.kit import Output, Table
from neorion.keel.kube import Added, Bookmark, Deleted, Modified, UndecodableObject


async def list_servers(fleet: DevServerApi) -> tuple[list[ServerRecord], Table[ServerRecord]]:
    """Servers, and the table for them."""
    return [ServerRecord.of(one) for one in await fleet.servers()], servers_table(fleet.clock.now())


async def watch_servers(fleet: DevServerApi, out: Output) -> None:
    """One line for each change, until the user or the server ends it."""
    with map_errors(fleet.namespace):
        await _follow(fleet, out)


async def _follow(fleet: DevServerApi, out: Output) -> None:
    emit = out.watch(servers_table(fleet.clock.now()))
    async with fleet.client.watch(DEVSERVERS, fleet.namespace) as changes:
        async for change in changes:
            match change:
                case Added(object=server) | Modified(object=server):
                    emit(ServerRecord.of(server))
                case Deleted(object=server):
                    out.say(f"{server.meta.name} is deleted.")
                case UndecodableObject(error=error):
                    raise error
                case Bookmark():
                    pass


def list_command(out: Output, where: ClusterSelector, *, watch: bool) -> None:
    with out.waiting("asking the cluster"):
        found = None if watch else run_with_api(out, where, list_servers)
    if found is None:
        run_with_api(out, where, lambda fleet: watch_servers(fleet, out))
    else:
        out.show(*found)
