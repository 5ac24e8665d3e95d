"""Lets go of what is over and no longer looked at."""

from neorion.keel.base import Duration
from neorion.keel.store import Tx
from neorion.navarch.controllers.fleet_controller import FleetController

# Repairs are remembered for as long as hosts are; more than this many say nothing new.
REPAIRS_FOR = Duration.of(hours=30 * 24)
REPAIRS_MAX = 5_000
# An orphan is recognised by the purchase it came from, so those are kept for long.
PURCHASES_MAX = 50_000


class RecordRetention:
    """Bounds memory and store."""

    def __init__(self, fleet: FleetController) -> None:
        self._fleet = fleet
        self._context = fleet.context
        self._state = fleet.context.state

    async def tick(self) -> None:
        now = self._context.clock.now()
        self._state.forget_purchases(now)
        self._fleet.cordon_drainer.forget_gone()
        self._fleet.reports.forget_gone()
        self._fleet.bootstrapper.forget_gone()
        self._fleet.remediator.forget_gone()
        over = sorted(
            (one for one in self._state.repairs.values() if one.step.over), key=lambda one: one.opened.ns
        )
        surplus = len(over) - REPAIRS_MAX
        for index, repair in enumerate(over):
            if index < surplus or now.since(repair.opened) > REPAIRS_FOR:
                self._state.drop_repair(repair)
        if await self._context.store.read(_purchases) > PURCHASES_MAX:
            await self._context.store.write(_forget_purchases)


def _purchases(tx: Tx) -> int:
    ((count,),) = tx.execute("SELECT COUNT(*) FROM purchase")
    return count


def _forget_purchases(tx: Tx) -> None:
    """The oldest tenth; ids sort by birth. One of a machine that still lives is found again by its node."""
    tx.execute(
        "DELETE FROM purchase WHERE id IN (SELECT id FROM purchase ORDER BY id LIMIT ?)",
        (PURCHASES_MAX // 10,),
    )
