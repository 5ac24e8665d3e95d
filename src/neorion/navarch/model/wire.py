"""The model's words as messages, and back. What comes in is checked here, whole, before anything else sees it."""

import math
from collections.abc import Iterable

from neorion.capacity.node import IdentityClaim
from neorion.keel.base import Duration, Finding, Instant, Invalid, did_you_mean
from neorion.navarch.model.gen import navarch_pb as pb
from neorion.navarch.model.health import EventKind, HealthEvent
from neorion.navarch.model.hold import Hold
from neorion.navarch.model.record import Node, Placement, Repair
from neorion.navarch.model.view import NodeHeartbeat

# A whole rack's worth of trouble on one machine; an agent with more sends another batch.
EVENTS_MAX = 500
METRICS_MAX = 32
TEXT_MAX = 1_000
GPUS_MAX = 64
# Beyond what any agent sees in its life.
NUMBER_MAX = 2**53
_KINDS = {kind.value: kind for kind in EventKind if kind is not EventKind.SILENCE}
_NAMES = (
    "node_id",
    "machine_id",
    "provider_id",
    "host_name",
    "kube_name",
    "pool",
    "instance_type",
    "kernel_boot",
    "secret",
)
# An event that its agent calls older than this was dated by a clock that was wrong then.
_AGE_MAX_MS = 7 * 24 * 3_600 * 1_000


def ms(at: Instant | None) -> int:
    return at.ns // 1_000_000 if at is not None else 0


def moment(ms_since: int) -> Instant:
    return Instant(ms_since * 1_000_000)


def claim(message: pb.RegisterRequest) -> IdentityClaim:
    for key in _NAMES:
        _text(key, getattr(message, key), 300)
    if not message.node_id:
        raise Invalid("navarch.no_name", "The agent does not say who it is.", hint="Start it with --node-id.")
    if len(message.gpus) > GPUS_MAX or len(message.facts) > METRICS_MAX:
        raise Invalid("navarch.too_much", "The agent says more than any machine has.")
    return IdentityClaim(message.node_id, message.machine_id, message.provider_id, message.host_name)


def boot(message: pb.ReportRequest) -> str:
    """The life of the agent that its events are numbered in."""
    if not 1 <= message.first <= NUMBER_MAX:
        raise Invalid("navarch.event_number", "Events are numbered from 1 on.")
    if not message.boot:
        raise Invalid("navarch.no_boot", "The agent does not say in which of its lives it saw this.")
    return _text("boot", message.boot, 100)


def events(messages: Iterable[pb.HealthEvent], sent_ms: int, now: Instant) -> list[HealthEvent]:
    """Events in the receiver's time: by their age when they were sent, not by the clock of the agent."""
    found = list(messages)
    if len(found) > EVENTS_MAX:
        raise Invalid(
            "navarch.too_much", f"More than {EVENTS_MAX} events came at once.", hint="Send several batches."
        )
    return [_event(message, _seen(message, sent_ms, now)) for message in found]


def _seen(message: pb.HealthEvent, sent_ms: int, now: Instant) -> Instant:
    age = sent_ms - message.at_ms
    return now - Duration.of(ms=age) if sent_ms > 0 and 0 <= age <= _AGE_MAX_MS else now


def _event(message: pb.HealthEvent, at: Instant) -> HealthEvent:
    kind = _KINDS.get(message.kind)
    if kind is None:
        raise Invalid(
            "navarch.event_kind",
            f"There is no kind of event {message.kind[:40]!r}.",
            hint=did_you_mean(message.kind, _KINDS),
        )
    if len(message.metrics) > METRICS_MAX or not all(math.isfinite(one) for one in message.metrics.values()):
        raise Invalid("navarch.metrics", f"An event has at most {METRICS_MAX} finite numbers.")
    for key in message.metrics:
        _text("a metric's name", key, 100)
    gpu = message.gpu if message.has_field("gpu") else -1
    if not -1 <= gpu < GPUS_MAX or not 0 <= message.xid < 10_000:
        raise Invalid("navarch.event", "No GPU and no error code has such a number.")
    return HealthEvent(
        at=at,
        kind=kind,
        gpu=gpu,
        gpu_uuid=_text("gpu_uuid", message.gpu_uuid, 100),
        xid=message.xid,
        message=_text("message", message.message, TEXT_MAX),
        metrics=dict(message.metrics),
    )


def _text(key: str, value: str, most: int) -> str:
    if len(value) > most:
        raise Invalid("navarch.too_long", f"{key} is longer than {most} characters.")
    return value


def placement_message(place: Placement) -> pb.Place:
    return pb.Place(
        provider=place.provider,
        instance_type=place.instance_type,
        region=place.region,
        zone=place.zone,
        spot=place.spot,
        price=place.price,
    )


def repair_message(repair: Repair) -> pb.Repair:
    return pb.Repair(
        id=repair.id,
        node=repair.node,
        remedy=repair.remedy.value,
        step=repair.step.value,
        why=repair.why,
        successor=repair.successor,
        swap=repair.swap,
        approved=repair.approved,
        by=repair.by,
        opened_ms=ms(repair.opened),
        times_ms={step: ms(at) for step, at in repair.times.items()},
    )


def node_message(node: Node, heartbeat: NodeHeartbeat | None, repair: Repair | None) -> pb.Node:
    message = pb.Node(
        id=node.id,
        pool=node.pool,
        state=node.state.value,
        health=node.health.value,
        why=node.why,
        place=placement_message(node.place),
        machine=node.machine,
        kube_name=node.kube_name,
        host=node.host,
        gpus=node.gpus,
        born_ms=ms(node.born),
        since_ms=ms(node.since),
        heard_ms=ms(heartbeat.heard if heartbeat else None),
        held=node.held,
        spare=node.spare,
        ailment=node.ailment.sentence if node.ailment else "",
        repair=repair_message(repair) if repair else None,
    )
    if heartbeat is not None and heartbeat.utilisation is not None:
        message.utilisation_percent = heartbeat.utilisation
    return message


def reason_message(hold: Hold, pool: str) -> pb.Reason:
    return pb.Reason(
        code=hold.code.value, subject=hold.subject, sentence=hold.sentence, hint=hold.hint, pool=pool
    )


def found_message(finding: Finding) -> pb.Found:
    return pb.Found(
        severity=finding.severity.value,
        code=finding.code,
        subject=finding.subject,
        sentence=finding.sentence,
        hint=finding.hint,
    )
