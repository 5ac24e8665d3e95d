"""Desired size by a pool's autoscaler, with its reason. Pure; `pool_size` applies the pool's limits."""

from dataclasses import dataclass

from neorion.keel.base import Instant
from neorion.navarch.decide.gpu_packing import PackingResult, pack
from neorion.navarch.decide.window import is_open
from neorion.navarch.model import Demand
from neorion.navarch.model.spec import (
    Autoscaler,
    CompositeAutoscaler,
    CompositeMode,
    PredictiveAutoscaler,
    QueueAutoscaler,
    ReactiveAutoscaler,
    ScheduledAutoscaler,
)


@dataclass(frozen=True, slots=True)
class AutoscalerInput:
    """Input of an autoscaler. `size` is the pool's current size; `least` and `most` are its limits."""

    size: int
    least: int
    most: int
    demand: Demand
    now: Instant
    gpus_per_node: int = 0

    def clamp(self, size: int) -> int:
        return max(self.least, min(self.most, size))


@dataclass(frozen=True, slots=True)
class Recommendation:
    """A size and its reason."""

    size: int
    why: str


def advise(scaler: Autoscaler, scene: AutoscalerInput) -> Recommendation | None:
    """None where the autoscaler knows too little to ask for anything: then the pool stays as it is."""
    match scaler:
        case ReactiveAutoscaler():
            return _reactive(scaler, scene)
        case QueueAutoscaler():
            return _queue(scaler, scene)
        case ScheduledAutoscaler():
            return _scheduled(scaler, scene)
        case PredictiveAutoscaler():
            return _predictive(scaler, scene)
        case CompositeAutoscaler():
            return _composite(scaler, scene)


def _reactive(scaler: ReactiveAutoscaler, scene: AutoscalerInput) -> Recommendation | None:
    used = scene.demand.utilisation
    if used is None:
        return None
    if used > scaler.up:
        return Recommendation(scene.clamp(scene.size + 1), f"utilisation {used:.0f}% is above {scaler.up:g}%")
    if used < scaler.down:
        return Recommendation(
            scene.clamp(scene.size - 1), f"utilisation {used:.0f}% is below {scaler.down:g}%"
        )
    return Recommendation(
        scene.clamp(scene.size), f"utilisation {used:.0f}% is between {scaler.down:g}% and {scaler.up:g}%"
    )


def _queue(scaler: QueueAutoscaler, scene: AutoscalerInput) -> Recommendation | None:
    demand = scene.demand
    if demand.pending is None:
        return None
    found = _fills(scene)
    # What cannot start brings no nodes, by its number neither.
    jobs = demand.pending + (demand.running or 0) - sum(map(len, found.homeless))
    nodes, why = -(-jobs // scaler.jobs_per_node), f"{jobs} jobs at {scaler.jobs_per_node} a node"
    if found.nodes > nodes:
        # Work that asks for whole GPUs needs them whatever the number of jobs says.
        nodes, why = found.nodes, f"work with {found.gpus} GPUs fills {found.nodes} nodes"
    if found.homeless:
        why += f"; a gang with {max(map(sum, found.homeless))} GPUs finds no room beside it on {scene.most} nodes"
    return Recommendation(scene.clamp(nodes), why)


def _fills(scene: AutoscalerInput) -> PackingResult:
    """Nodes that the work fills. A node with work counts whole if the free GPUs of nodes are unknown."""
    busy = [*scene.demand.busy.values()]
    if not scene.gpus_per_node:
        return PackingResult(len(busy), sum(busy))
    return pack(busy, scene.demand.waiting, scene.gpus_per_node, scene.most)


def _scheduled(scaler: ScheduledAutoscaler, scene: AutoscalerInput) -> Recommendation | None:
    span = next((one for one in scaler.spans if is_open(one.window, scene.now)), None)
    if span is None:
        return advise(scaler.fallback, scene) if scaler.fallback else None
    # A schedule narrows the pool's limits; it cannot widen what an operator set as the most.
    most = min(span.max_nodes, scene.most)
    least = min(max(span.min_nodes, scene.least), most)
    within = AutoscalerInput(scene.size, least, most, scene.demand, scene.now, scene.gpus_per_node)
    found = advise(scaler.fallback, within) if scaler.fallback else None
    if found is not None:
        return Recommendation(
            within.clamp(found.size), f"{found.why}, within the schedule's {least} to {most}"
        )
    return Recommendation(within.clamp(scene.size), f"the schedule wants {least} to {most} nodes now")


def _predictive(scaler: PredictiveAutoscaler, scene: AutoscalerInput) -> Recommendation | None:
    samples = scene.demand.samples[-scaler.lookback :]
    if len(samples) < scaler.lookback or scene.demand.utilisation is None:
        return advise(scaler.fallback, scene) if scaler.fallback else None
    predicted = scene.demand.utilisation + (samples[-1] - samples[0]) * scaler.growth
    if predicted <= scaler.threshold:
        return advise(scaler.fallback, scene) if scaler.fallback else None
    size = max(scene.size + 1, round(scene.size * predicted / scaler.goal))
    return Recommendation(scene.clamp(size), f"utilisation goes towards {predicted:.0f}%")


def _composite(scaler: CompositeAutoscaler, scene: AutoscalerInput) -> Recommendation | None:
    found = [one for part in scaler.parts if (one := advise(part, scene)) is not None]
    if not found:
        return None
    match scaler.mode:
        case CompositeMode.MAX:
            chosen = max(found, key=lambda one: one.size)
            return Recommendation(chosen.size, f"the most of {len(found)}: {chosen.why}")
        case CompositeMode.MIN:
            chosen = min(found, key=lambda one: one.size)
            return Recommendation(chosen.size, f"the least of {len(found)}: {chosen.why}")
        case CompositeMode.AVG:
            size = -(-sum(one.size for one in found) // len(found))
            return Recommendation(scene.clamp(size), "the average of: " + "; ".join(one.why for one in found))
