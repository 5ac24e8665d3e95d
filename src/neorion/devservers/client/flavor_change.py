"""Another flavor for a server: what it would mean, before anything is changed."""

from msgspec import Struct

from neorion.devservers.client.api import DevServerApi
from neorion.devservers.decide import Observed
from neorion.devservers.decide.resize import ResizeMode
from neorion.devservers.model.kube_types import (
    DEPLOYMENTS,
    STATEFUL_SETS,
    DevServerFlavor,
    DevServerObject,
    ServerDeployment,
)
from neorion.keel.base import Conflict, NotFound


class FlavorChangePlan(Struct, frozen=True):
    """A server, the flavor it would get, and what that does to it."""

    server: DevServerObject
    flavor: DevServerFlavor
    change: ResizeMode

    @property
    def restarts(self) -> bool:
        return self.change is ResizeMode.RECREATE

    @property
    def sentence(self) -> str:
        name = self.server.meta.name
        if not self.server.spec.running:
            return f"{name} is stopped: the change counts from its next start."
        if self.restarts:
            return (
                f"{name} restarts: what runs in it ends, and it is away until its new machine is ready; "
                "its home and its volumes stay."
            )
        return f"{name} keeps running: CPU and memory change under it."


async def plan_move(fleet: DevServerApi, name: str, flavor: str) -> FlavorChangePlan:
    """Refuses a flavor that is not there, and one the server has."""
    server = await fleet.server(name)
    wanted = await fleet.flavor(flavor)
    if server.spec.flavor == wanted.meta.name:
        raise Conflict(
            "devservers.same_flavor",
            f"{name} is on {wanted.meta.name} already.",
            hint="List the others: devctl flavors.",
        )
    seen = Observed(server, wanted, body=await _body(fleet, server), pods=tuple(await fleet.pods(name)))
    return FlavorChangePlan(server, wanted, seen.change)


async def _body(fleet: DevServerApi, server: DevServerObject) -> ServerDeployment | None:
    kind = DEPLOYMENTS if server.spec.distributed is None else STATEFUL_SETS
    try:
        return await fleet.client.get(kind, server.meta.name, fleet.namespace)
    except NotFound:
        return None
