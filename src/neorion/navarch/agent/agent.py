"""Registers, then beats, watches and reports until the control plane knows the node no more."""

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Final

import anyio

from neorion.capacity.gpu import Remedy
from neorion.keel.base import Denied, Duration, Error, Id, Invalid, NotFound, Retry
from neorion.keel.clock import Clock, Ids, Rng
from neorion.keel.rpc import Channel
from neorion.keel.run import Backoff, retry
from neorion.keel.telemetry import logger
from neorion.navarch.model import EventKind, HealthEvent, wire
from neorion.navarch.model.gen import navarch_pb as pb
from neorion.navarch.model.gen.navarch_connect import AgentServiceClient
from neorion.navarch.ports import Gpu, Probe

log = logger(__name__)

# Without the control plane events gather; what is older than this many newer ones is lost, and that is said.
WAITING_MAX: Final = 1_000
BATCH_MAX: Final = 200
# A control plane that restarts is back within a minute; agents must not all ask at the same moment.
_PATIENCE: Final = Backoff(first=Duration.of(seconds=1), most=Duration.of(seconds=30), attempts=10**9)


class BootId(Id):
    """One life of one agent."""

    __slots__ = ()
    prefix = "boot"


@dataclass(frozen=True, slots=True)
class Identity:
    """What the agent was told, or found out, about where it runs."""

    name: str
    machine: str = ""
    provider_id: str = ""
    host_name: str = ""
    kube_name: str = ""
    pool: str = ""
    instance_type: str = ""


@dataclass(slots=True)
class _Session:
    """What a registration brought, and what this life of the agent has to say."""

    calls: AgentServiceClient
    every: Duration
    look: Duration
    expected: int
    boot: str
    batch: int = 0
    waiting: deque[HealthEvent] = field(default_factory=lambda: deque[HealthEvent](maxlen=WAITING_MAX))
    news: asyncio.Event = field(default_factory=asyncio.Event)
    beat: asyncio.Event = field(default_factory=asyncio.Event)
    tested: bool | None = None
    done: list[str] = field(default_factory=list[str])
    found: int = -1


class Agent:
    """One machine's voice. `dial` opens a channel with a token; the first is the one for joining."""

    def __init__(
        self,
        who: Identity,
        probe: Probe,
        dial: Callable[[str | None], Channel],
        clock: Clock,
        ids: Ids,
        rng: Rng,
    ) -> None:
        self._who = who
        self._probe = probe
        self._dial = dial
        self._clock = clock
        self._ids = ids
        self._rng = rng

    async def run(self, join_token: str | None) -> None:
        """Ends when the control plane knows the node no more; everything else is tried again."""
        session = await self._register(join_token)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._watch, session)
            tasks.start_soon(self._test, session)
            tasks.start_soon(self._send, session)
            await self._beat(session)
            tasks.cancel_scope.cancel()

    async def _register(self, join_token: str | None) -> _Session:
        who, gpus = self._who, await self._gpus() or ()
        request = pb.RegisterRequest(
            node_id=who.name,
            machine_id=who.machine,
            provider_id=who.provider_id,
            host_name=who.host_name,
            kube_name=who.kube_name,
            pool=who.pool,
            instance_type=who.instance_type,
            gpus=[_message(gpu) for gpu in gpus],
        )
        joining = self._dial(join_token).client(AgentServiceClient)
        answer = await retry(lambda: joining.register(request), _PATIENCE, self._clock, self._rng)
        log.info("registered", node=answer.node)
        return _Session(
            calls=self._dial(answer.token).client(AgentServiceClient),
            every=Duration.of(ms=answer.heartbeat_interval_ms),
            look=Duration.of(ms=answer.health_check_interval_ms),
            expected=answer.expected_gpus,
            boot=self._ids.new(BootId),
        )

    async def _beat(self, session: _Session) -> None:
        while True:
            session.beat.clear()
            gpus = await self._gpus()
            if gpus is not None:
                self._count(session, gpus)
            done = list(session.done)
            request = pb.HeartbeatRequest(gpus=[_message(gpu) for gpu in gpus or ()], done=done)
            if session.tested is not None:
                request.tested = session.tested
            try:
                answer = await session.calls.heartbeat(request)
            except (NotFound, Denied) as error:
                log.info("the control plane knows this node no more", why=error.sentence)
                return
            except Retry as error:
                log.warning("heartbeat was not heard", why=error.sentence)
            else:
                session.done = [one for one in session.done if one not in done]
                await self._obey(session, answer.orders)
            with anyio.move_on_after(session.every.seconds):
                await session.beat.wait()

    async def _gpus(self) -> Sequence[Gpu] | None:
        """None where nobody can say: that is no proof that they are gone, and the watch tells why."""
        try:
            return await self._probe.gpus()
        except Retry as error:
            log.warning("the GPUs cannot be seen", why=error.sentence)
            return None

    def _count(self, session: _Session, gpus: Sequence[Gpu]) -> None:
        """Fewer GPUs than the machine was bought with; told when it changes, not with every look."""
        if not session.expected or len(gpus) == session.found:
            return
        if len(gpus) < session.expected or session.found not in (-1, len(gpus)):
            metrics = {"found": float(len(gpus)), "expected": float(session.expected)}
            self._tell(session, HealthEvent(self._clock.now(), EventKind.GPU_MISSING, metrics=metrics))
        session.found = len(gpus)

    async def _obey(self, session: _Session, orders: Sequence[pb.Order]) -> None:
        for order in orders:
            try:
                await self._probe.treat(Remedy(order.remedy), order.gpu)
            except Error as error:
                log.failure("treatment failed", error, order=order.id)
                continue
            session.done.append(order.id)
            session.beat.set()

    async def _watch(self, session: _Session) -> None:
        await self._probe.watch(partial(self._tell, session), session.look)

    async def _test(self, session: _Session) -> None:
        session.tested = await self._probe.self_test()
        session.beat.set()

    def _tell(self, session: _Session, event: HealthEvent) -> None:
        if len(session.waiting) == WAITING_MAX:
            log.warning("an event was lost", kind=session.waiting[0].kind.value)
        session.waiting.append(event)
        session.news.set()

    async def _send(self, session: _Session) -> None:
        """Everything that waits, at once. A batch is repeated under its number until it was taken."""
        while True:
            await session.news.wait()
            session.news.clear()
            while session.waiting:
                batch = [session.waiting.popleft() for _ in range(min(BATCH_MAX, len(session.waiting)))]
                session.batch += 1
                request = pb.ReportRequest(
                    boot=session.boot, batch=session.batch, events=[_event(event) for event in batch]
                )
                try:
                    await retry(
                        lambda request=request: session.calls.report(request),
                        _PATIENCE,
                        self._clock,
                        self._rng,
                    )
                except (NotFound, Denied):
                    # The heartbeat hears it too, and ends.
                    return
                except Invalid as error:
                    # Sent again it would be refused again, and hold up what comes after it.
                    log.failure("events were refused", error, events=len(batch))


def _message(gpu: Gpu) -> pb.Gpu:
    return pb.Gpu(
        index=gpu.index,
        uuid=gpu.uuid,
        model=gpu.model,
        temperature_celsius=gpu.temperature,
        power_watts=gpu.power,
        utilisation_percent=gpu.utilisation,
        memory_used_bytes=gpu.memory_used,
    )


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
