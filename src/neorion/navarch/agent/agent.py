"""Registers, then beats, watches and reports until the control plane knows the node no more."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Final, TypeVar

import anyio

from neorion.capacity.gpu import Remedy
from neorion.keel.base import Denied, Duration, Error, Invalid, NotFound, Retry, Unauthenticated
from neorion.keel.clock import Clock, Ids, Rng
from neorion.keel.rpc import Channel
from neorion.keel.run import Backoff, retry
from neorion.keel.telemetry import logger
from neorion.navarch.agent import messages
from neorion.navarch.agent.identity import HostIdentity
from neorion.navarch.agent.outbox import Batch
from neorion.navarch.agent.state_dir import AgentState
from neorion.navarch.model import EventKind, HealthEvent
from neorion.navarch.model.gen import navarch_pb as pb
from neorion.navarch.model.gen.navarch_client import AgentServiceClient
from neorion.navarch.ports import Gpu, Probe

log = logger(__name__)
T = TypeVar("T")

# A control plane that restarts is back within a minute; agents must not all ask at the same moment.
_PATIENCE: Final = Backoff(first=Duration.of(seconds=1), most=Duration.of(seconds=30), attempts=10**9)


@dataclass(slots=True)
class _Session:
    """Results of a registration, and contents of the next heartbeat."""

    channel: Channel
    calls: AgentServiceClient
    memory: AgentState
    joining: str | None
    every: Duration = field(default=Duration(0))
    look: Duration = field(default=Duration(0))
    expected: int = 0
    # When to ask for another token, on the monotonic clock.
    renew_at: float = 0.0
    beat: asyncio.Event = field(default_factory=asyncio.Event)
    tested: bool | None = None
    # Set when something was done to the machine since its test began.
    treated: asyncio.Event = field(default_factory=asyncio.Event)
    begun: set[str] = field(default_factory=set[str])
    done: list[str] = field(default_factory=list[str])
    refused: list[pb.Refusal] = field(default_factory=list[pb.Refusal])
    found: int = -1


class Agent:
    """One machine's voice. `dial` opens a channel; the token it is made with is the one for joining."""

    def __init__(
        self,
        who: HostIdentity,
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

    async def run(self, join_token: str | None, memory: AgentState | None = None) -> None:
        """Ends when the control plane knows the node no more; everything else is tried again."""
        channel = self._dial(join_token)
        kept = memory or AgentState.of_one_life(self._ids)
        session = _Session(channel, channel.client(AgentServiceClient), kept, join_token)
        await self._register(session)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(kept.outbox.keep)
            tasks.start_soon(self._probe.watch, kept.outbox.put, session.look)
            tasks.start_soon(self._test, session)
            tasks.start_soon(self._send, session)
            await self._beat(session)
            tasks.cancel_scope.cancel()

    # Who it is.

    async def _register(self, session: _Session) -> None:
        """With the token it was given last, if it has one; with the one for joining where that is not taken any more."""
        request = messages.registration(
            self._who, session.memory.wallet.papers.secret, await self._gpus() or ()
        )
        own = session.memory.wallet.papers.token
        try:
            session.channel.show(own or None)
            answer = await self._until_answered(lambda: session.calls.register(request))
        except Denied as error:
            if not own or session.joining is None:
                raise
            log.warning("the token of before is not taken any more", why=error.sentence)
            session.channel.show(None)
            answer = await self._until_answered(lambda: session.calls.register(request))
        log.info("registered", node=answer.node)
        session.every = Duration.of(ms=answer.heartbeat_interval_ms)
        session.look = Duration.of(ms=answer.health_check_interval_ms)
        session.expected = answer.expected_gpus
        self._speak_with(session, answer.token, Duration.of(ms=answer.token_life_ms))

    def _speak_with(self, session: _Session, token: str, life: Duration) -> None:
        session.memory.wallet.put(token)
        session.channel.show(token)
        session.renew_at = self._clock.monotonic() + life.seconds / 2

    async def _until_answered(self, call: Callable[[], Awaitable[T]]) -> T:
        async def attempt() -> T:
            try:
                return await call()
            except Retry as error:
                log.warning("the control plane did not take it", why=error.sentence)
                raise

        return await retry(attempt, _PATIENCE, self._clock, self._rng)

    # That it lives.

    async def _beat(self, session: _Session) -> None:
        while True:
            session.beat.clear()
            request = await self._heartbeat(session)
            try:
                answer = await session.calls.heartbeat(request)
            except Unauthenticated as error:
                log.warning("its token is not taken any more", why=error.sentence)
                await self._register(session)
                continue
            except (NotFound, Denied) as error:
                log.info("the control plane knows this node no more", why=error.sentence)
                session.memory.outbox.clear()
                return
            except Retry as error:
                log.warning("heartbeat was not heard", why=error.sentence)
            else:
                self._on_heartbeat(session, request, answer)
                await self._run_orders(session, answer.orders)
            with anyio.move_on_after(session.every.seconds):
                await session.beat.wait()

    async def _heartbeat(self, session: _Session) -> pb.HeartbeatRequest:
        gpus = await self._gpus()
        if gpus is not None:
            self._count(session, gpus)
        request = pb.HeartbeatRequest(
            gpus=[messages.gpu(one) for one in gpus or ()],
            done=list(session.done),
            refused=list(session.refused),
            renew=self._clock.monotonic() >= session.renew_at,
        )
        if session.tested is not None:
            request.tested = session.tested
        return request

    def _on_heartbeat(
        self, session: _Session, request: pb.HeartbeatRequest, answer: pb.HeartbeatResponse
    ) -> None:
        session.done = [one for one in session.done if one not in request.done]
        session.refused = [one for one in session.refused if one not in request.refused]
        if answer.token:
            self._speak_with(session, answer.token, Duration.of(ms=answer.token_life_ms))

    async def _gpus(self) -> Sequence[Gpu] | None:
        """The machine's GPUs; None if they are unknown now, which does not prove that they are gone."""
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
            session.memory.outbox.put(HealthEvent(self._clock.now(), EventKind.GPU_MISSING, metrics=metrics))
        session.found = len(gpus)

    async def _test(self, session: _Session) -> None:
        """At the start and after each treatment. With fewer GPUs than it was bought with a machine is not fit, however well those are."""
        while True:
            session.treated.clear()
            fit = await self._probe.self_test()
            gpus = await self._gpus()
            if not session.treated.is_set():
                session.tested = fit and gpus is not None and len(gpus) >= session.expected
                session.beat.set()
            await session.treated.wait()

    # What it is told to do.

    async def _run_orders(self, session: _Session, orders: Sequence[pb.Order]) -> None:
        """Each once. Of a reboot the control plane learns by the agent's next life: until then nothing was carried out."""
        for order in orders:
            if order.id in session.begun:
                continue
            session.begun.add(order.id)
            try:
                remedy = messages.remedy(order)
                await self._probe.treat(remedy, order.gpu)
            except Error as error:
                log.failure("treatment failed", error, order=order.id)
                session.refused.append(messages.refusal(order, error))
            else:
                if remedy is Remedy.REBOOT:
                    continue
                session.done.append(order.id)
                # What was found before says nothing about the machine after.
                session.tested = None
                session.treated.set()
            session.beat.set()

    # What it saw.

    async def _send(self, session: _Session) -> None:
        """Everything that waits, at once, and again until it was taken."""
        outbox = session.memory.outbox
        while True:
            batch = await outbox.next_batch()

            async def send(batch: Batch = batch) -> pb.ReportResponse:
                # Dated at each try: the control plane may have been away for hours.
                return await session.calls.report(messages.report(batch, self._clock.now()))

            try:
                await self._until_answered(send)
            except Unauthenticated:
                # The heartbeat gets the same error, and registers again.
                session.beat.set()
                await self._clock.sleep(_PATIENCE.first)
                continue
            except (NotFound, Denied):
                # As above; there it ends.
                return
            except Invalid as error:
                # Sent again it would be refused again, and hold up what comes after it.
                log.failure("events were refused", error, events=len(batch.events))
            outbox.taken(batch)
