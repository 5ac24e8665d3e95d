"""Records and tables that commands print."""

from dataclasses import dataclass
from typing import Final

from neorion.keel.base import Instant
from neorion.keel.cli.kit import Column, Table, Tone
from neorion.keel.cli.kit.humanize import ago, instant_of_ms
from neorion.keel.clock import Clock
from neorion.navarch.model.gen import navarch_pb as pb

# Of what a setup command said; -o json has all that is kept.
OUTPUT_MAX: Final = 200
_TONES: Final = {
    "active": Tone.GOOD,
    "healthy": Tone.GOOD,
    "unhealthy": Tone.BAD,
    "degraded": Tone.WARNING,
    "unknown": Tone.WARNING,
}


@dataclass(frozen=True, slots=True)
class PoolRecord:
    """A pool in numbers."""

    name: str
    nodes: dict[str, int]
    wanted: int
    min_nodes: int
    max_nodes: int
    unhealthy: int
    repairs: int
    autoscaler: str
    providers: list[str]
    paused: str
    wanted_by: str
    labels: dict[str, str]
    dollars_per_hour: float
    holds: list[str]
    barred: list[str]

    @classmethod
    def of(cls, pool: pb.Pool) -> "PoolRecord":
        return cls(
            name=pool.name,
            nodes=dict(pool.nodes),
            wanted=pool.wanted,
            min_nodes=pool.min_nodes,
            max_nodes=pool.max_nodes,
            unhealthy=pool.unhealthy,
            repairs=pool.repairs,
            autoscaler=pool.autoscaler,
            providers=list(pool.providers),
            paused=pool.paused,
            wanted_by=pool.wanted_by,
            labels=dict(pool.labels),
            dollars_per_hour=pool.dollars_per_hour,
            holds=[f"{hold.subject}: {hold.sentence}" for hold in pool.holds],
            barred=list(pool.barred),
        )


POOLS: Final[Table[PoolRecord]] = Table(
    (
        Column("POOL", lambda it: it.name),
        Column("ACTIVE", lambda it: it.nodes.get("active", 0), right=True),
        Column("WANTED", lambda it: it.wanted, right=True),
        Column("LIMITS", lambda it: f"{it.min_nodes} to {it.max_nodes}", priority=2),
        Column(
            "UNHEALTHY",
            lambda it: it.unhealthy,
            right=True,
            tone=lambda it: Tone.BAD if it.unhealthy else None,
        ),
        Column("REPAIRS", lambda it: it.repairs, right=True, priority=1),
        Column("AUTOSCALER", lambda it: it.autoscaler, priority=3),
        Column("PROVIDERS", lambda it: it.providers, priority=4),
        Column("PAUSED", lambda it: it.paused, wrap=True),
        Column(
            "NODES", lambda it: ", ".join(f"{count} {state}" for state, count in it.nodes.items()), wide=True
        ),
        Column("WHY", lambda it: it.wanted_by, wide=True),
        Column("LABELS", lambda it: [f"{key}={value}" for key, value in it.labels.items()], wide=True),
        Column("WAITING", lambda it: "; ".join(it.holds), wide=True),
        Column("BARRED", lambda it: it.barred, wide=True),
    ),
    name=lambda it: it.name,
    empty="No pools.",
)


@dataclass(frozen=True, slots=True)
class NodeRecord:
    """A node as the control plane knows it."""

    id: str
    pool: str
    state: str
    health: str
    instance_type: str
    where: str
    gpus: int
    since: Instant | None
    heard: Instant | None
    machine: str
    kube_name: str
    host: str
    why: str
    ailment: str
    repair: str

    @classmethod
    def of(cls, node: pb.Node) -> "NodeRecord":
        place = node.place or pb.Place()
        repair = node.repair
        return cls(
            id=node.id,
            pool=node.pool,
            state=node.state,
            health=node.health,
            instance_type=place.instance_type,
            where="/".join(part for part in (place.provider, place.region, place.zone) if part),
            gpus=node.gpus,
            since=instant_of_ms(node.since_ms),
            heard=instant_of_ms(node.heard_ms),
            machine=node.machine,
            kube_name=node.kube_name,
            host=node.host,
            why=node.why,
            ailment=node.ailment,
            repair=f"{repair.remedy}, {repair.step}" if repair else "",
        )


def nodes_table(clock: Clock) -> Table[NodeRecord]:
    return Table(
        (
            Column("NODE", lambda it: it.id),
            Column("POOL", lambda it: it.pool),
            Column("STATE", lambda it: it.state, tone=lambda it: _TONES.get(it.state)),
            Column("HEALTH", lambda it: it.health, tone=lambda it: _TONES.get(it.health)),
            Column("WHERE", lambda it: it.where, priority=3),
            Column("HEARD", lambda it: ago(clock.now(), it.heard), priority=2),
            Column("REPAIR", lambda it: it.repair, priority=1),
            Column("TYPE", lambda it: it.instance_type, wide=True),
            Column("GPUS", lambda it: it.gpus, right=True, wide=True),
            Column("SINCE", lambda it: it.since, wide=True),
            Column("MACHINE", lambda it: it.machine, wide=True),
            Column("KUBERNETES", lambda it: it.kube_name, wide=True),
            Column("HOST", lambda it: it.host, wide=True),
            Column("AILMENT", lambda it: it.ailment, wide=True),
            Column("WHY", lambda it: it.why, wide=True),
        ),
        name=lambda it: it.id,
        empty="No nodes.",
    )


@dataclass(frozen=True, slots=True)
class HistoryRecord:
    """One line of a story."""

    at: Instant | None
    event: str
    sentence: str
    data: dict[str, str]

    @classmethod
    def of(cls, line: pb.Line) -> "HistoryRecord":
        return cls(instant_of_ms(line.at_ms), line.event, line.sentence, dict(line.data))


LINES: Final[Table[HistoryRecord]] = Table(
    (
        Column("AT", lambda it: it.at),
        Column("EVENT", lambda it: it.event, priority=1),
        Column("WHAT", lambda it: it.sentence, wrap=True),
        Column("OUTPUT", lambda it: " ".join(it.data.get("output", "").split())[-OUTPUT_MAX:], wide=True),
    ),
    name=lambda it: it.event,
    empty="Nothing is known of it.",
)


@dataclass(frozen=True, slots=True)
class RepairRecord:
    """A repair that was asked for."""

    id: str
    node: str
    remedy: str
    step: str
    why: str

    @classmethod
    def of(cls, repair: pb.Repair) -> "RepairRecord":
        return cls(repair.id, repair.node, repair.remedy, repair.step, repair.why)


REPAIRS: Final[Table[RepairRecord]] = Table(
    (
        Column("REPAIR", lambda it: it.id),
        Column("NODE", lambda it: it.node),
        Column("REMEDY", lambda it: it.remedy),
        Column("STEP", lambda it: it.step),
        Column("WHY", lambda it: it.why, wrap=True),
    ),
    name=lambda it: it.id,
)


@dataclass(frozen=True, slots=True)
class StepRecord:
    """Something that would be done, or would not."""

    pool: str
    action: str
    sentence: str


def steps_in(plan: pb.PlanResponse) -> list[StepRecord]:
    """Planned actions, then the actions that wait, each with its pool first."""
    return [
        *(StepRecord(one.pool, one.action, one.sentence) for one in plan.steps),
        *(StepRecord(one.pool, f"wait: {one.code}", f"{one.subject}: {one.sentence}") for one in plan.holds),
    ]


STEPS: Final[Table[StepRecord]] = Table(
    (
        Column("POOL", lambda it: it.pool),
        Column("ACTION", lambda it: it.action),
        Column("WHAT", lambda it: it.sentence, wrap=True),
    ),
    name=lambda it: it.action,
    empty="Nothing is to be done.",
)
