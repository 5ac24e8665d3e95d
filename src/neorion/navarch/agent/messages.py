"""Messages of the agent, and back."""

from collections.abc import Sequence

from neorion.capacity.gpu import Remedy
from neorion.keel.base import Error, Instant, Invalid, did_you_mean
from neorion.navarch.agent.identity import HostIdentity
from neorion.navarch.agent.outbox import Batch
from neorion.navarch.model import HealthEvent, wire
from neorion.navarch.model.gen import navarch_pb as pb
from neorion.navarch.ports import Gpu


def registration(who: HostIdentity, secret: str, gpus: Sequence[Gpu]) -> pb.RegisterRequest:
    return pb.RegisterRequest(
        node_id=who.name,
        machine_id=who.machine,
        provider_id=who.provider_id,
        host_name=who.host_name,
        kube_name=who.kube_name,
        pool=who.pool,
        instance_type=who.instance_type,
        kernel_boot=who.kernel_boot,
        secret=secret,
        gpus=[gpu(one) for one in gpus],
    )


def gpu(one: Gpu) -> pb.Gpu:
    return pb.Gpu(
        index=one.index,
        uuid=one.uuid,
        model=one.model,
        temperature_celsius=one.temperature,
        power_watts=one.power,
        utilisation_percent=one.utilisation,
        memory_used_bytes=one.memory_used,
    )


def report(batch: Batch, now: Instant) -> pb.ReportRequest:
    """`now` is by the clock that dated the events."""
    return pb.ReportRequest(
        boot=batch.boot,
        first=batch.first,
        events=[_event(event) for event in batch.events],
        sent_ms=wire.ms(now),
    )


def remedy(order: pb.Order) -> Remedy:
    """A control plane newer than the agent may know more of them."""
    try:
        return Remedy(order.remedy)
    except ValueError:
        raise Invalid(
            "agent.remedy",
            f"This agent knows no remedy {order.remedy[:40]!r}.",
            hint=did_you_mean(order.remedy, [one.value for one in Remedy]),
        ) from None


def refusal(order: pb.Order, error: Error) -> pb.Refusal:
    return pb.Refusal(id=order.id, code=error.code, sentence=error.sentence[: wire.TEXT_MAX])


def _event(event: HealthEvent) -> pb.HealthEvent:
    message = pb.HealthEvent(
        at_ms=wire.ms(event.at),
        kind=event.kind.value,
        gpu_uuid=event.gpu_uuid,
        xid=event.xid,
        message=event.message,
        metrics=dict(event.metrics),
    )
    if event.gpu >= 0:
        message.gpu = event.gpu
    return message
