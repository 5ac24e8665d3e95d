"""Laws of the fleet, checked from outside of what should keep them: by the doctor, in simulations, and by the loop itself."""

from collections import Counter
from collections.abc import Iterator

from neorion.keel.base import Finding, Severity
from neorion.navarch.decide.budget import begun
from neorion.navarch.model import Health, NodeState, PoolView, PurchaseState, RepairStep


def violations(view: PoolView) -> list[Finding]:
    return [*_nodes(view), *_repairs(view), *_size(view)]


def _nodes(view: PoolView) -> Iterator[Finding]:
    bought = Counter(purchase.machine for purchase in view.purchases if purchase.machine)
    for machine, times in bought.items():
        if times > 1:
            yield _finding("navarch.two_purchases", machine, f"{times} purchases name one machine")
    known = {purchase.id: purchase for purchase in view.purchases}
    for node in view.nodes:
        if node.health is Health.UNHEALTHY and node.ailment is None:
            yield _finding("navarch.sick_of_nothing", node.id, "it counts as unhealthy, and nothing ails it")
        if node.state is not NodeState.ORDERED:
            continue
        purchase = known.get(node.purchase)
        if purchase is not None and purchase.state is PurchaseState.BOUGHT:
            yield _finding("navarch.bought_twice", node.id, "it is ordered although its machine was bought")
        if node.machine:
            yield _finding("navarch.ordered_machine", node.id, "it is ordered and has a machine already")


def _repairs(view: PoolView) -> Iterator[Finding]:
    per_node = Counter(repair.node for repair in view.open_repairs)
    for node, count in per_node.items():
        if count > 1:
            yield _finding("navarch.two_repairs", node, f"{count} repairs are open for one node")
    successors = Counter(repair.successor for repair in view.open_repairs if repair.successor)
    for node, count in successors.items():
        if count > 1:
            yield _finding("navarch.shared_successor", node, f"it is to replace {count} nodes")
    for repair in view.open_repairs:
        old = view.node(repair.node)
        if old is not None and repair.swap and repair.step is RepairStep.BUYING and not old.state.serving:
            yield _finding("navarch.gone_too_early", old.id, "it left before its successor came")
    down = sum(begun(repair) for repair in view.open_repairs)
    for budget in view.spec.health.budgets:
        # The pool may have shrunk since they began: then the budget of the larger one still counts.
        most = budget.most.of(view.spec.scaling.most)
        narrow = budget.reasons or budget.zones or budget.each_zone or budget.windows or budget.per
        if not narrow and down > most:
            yield _finding(
                "navarch.over_budget", view.spec.name, f"{down} nodes are out of service, {most} may be"
            )


def _size(view: PoolView) -> Iterator[Finding]:
    scaling = view.spec.scaling
    alive = view.settled + len(view.paid)
    most = scaling.most + scaling.spares + scaling.surge.of(scaling.most)
    if alive > most:
        yield _finding("navarch.too_many", view.spec.name, f"{alive} machines, {most} at the most")


def _finding(code: str, subject: str, sentence: str) -> Finding:
    return Finding(Severity.ERROR, code, subject, f"{subject}: {sentence}.", "report this as a defect")
