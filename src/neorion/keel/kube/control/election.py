"""One of several replicas works: who holds a Lease, how long it may believe so, and how it hands over."""

import math
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Final, Protocol

import anyio
from msgspec.structs import replace

from neorion.keel.base import Conflict, Duration, Error, Invalid, Retry
from neorion.keel.clock import Clock, Rng
from neorion.keel.kube.core import LEASE, Lease
from neorion.keel.kube.interface import Bookmark, Deleted, KubeApi, Selector
from neorion.keel.kube.objects import ObjectKey, ObjectMeta, micro_time_text
from neorion.keel.run import Backoff
from neorion.keel.telemetry import logger

log = logger(__name__)

# What the last act of a holder may take: longer, and it is quicker to let the lease run out.
RELEASE_S_MAX: Final = 2.0
BACKOFF: Final = Backoff(first=Duration.of(ms=200), most=Duration.of(seconds=5))
_NEVER: Final = float("-inf")


class Fence(Protocol):
    """Asked before every write: raises when the right to write may be somebody else's by now."""

    def check(self) -> None: ...


class Unfenced:
    """For programs of which only one ever runs."""

    def check(self) -> None:
        return


UNFENCED: Final = Unfenced()


@dataclass(frozen=True, slots=True)
class LeaderLeaseTiming:
    """Others take over `lasts` after the last renewal that they saw; the holder stops `stop_after` its last renewal.

    Each side measures by its own monotonic clock, so only the rates of clocks matter: the holder's may run slower than
    another's by the ratio of the two spans before there could be two holders.
    """

    lasts: Duration
    stop_after: Duration
    renew_every: Duration

    def __post_init__(self) -> None:
        if not self.renew_every * 2 <= self.stop_after < self.lasts:
            raise Invalid(
                "kube.tenure",
                f"A lease of {self.lasts}, stopped after {self.stop_after}, renewed every {self.renew_every} is not safe.",
                hint="Renew at least twice before stopping, and stop before others take over.",
            )


# A dead holder is replaced within ten seconds, and four renewals in a row may fail before a living one stops.
TENURE: Final = LeaderLeaseTiming(Duration.of(seconds=9), Duration.of(seconds=6), Duration.of(seconds=1.5))


class Election:
    """Contends for one Lease and runs work while it is held. Its `check` is the fence for the writes of that work.

    The work runs in a cancel scope whose deadline moves with each renewal, counted from before the renewal was sent: a
    holder that cannot renew, for whatever reason, has stopped before anybody else may begin.
    """

    def __init__(
        self,
        api: KubeApi,
        lease: ObjectKey,
        identity: str,
        clock: Clock,
        rng: Rng,
        tenure: LeaderLeaseTiming = TENURE,
    ) -> None:
        """The identity must be the process's own: a pod's name is not enough, because its container may be restarted."""
        self.identity = identity
        self.key = lease
        self._api = api
        self._clock = clock
        self._rng = rng
        self._tenure = tenure
        self._lease = Lease()
        # By the monotonic clock; in the past while somebody else holds the lease.
        self._until = _NEVER
        # The newest version of somebody else's lease, and when we first saw it.
        self._seen = ("", 0.0)

    @property
    def holds(self) -> bool:
        return self._clock.monotonic() < self._until

    def check(self) -> None:
        if not self.holds:
            raise Conflict(
                "kube.not_leader",
                f"{self.identity} does not hold the lease {self.key}.",
                hint="The holder does it.",
            )

    async def run(self, work: Callable[[], Awaitable[None]], stopping: anyio.Event | None = None) -> None:
        """Until the work ends by itself: then the lease is given back at once. A lost lease is contended for again, unless `stopping`.

        Work that is cancelled or fails leaves the lease to run out.
        """
        while True:
            await self._win()
            if await self._reign(work) or (stopping is not None and stopping.is_set()):
                return

    async def _reign(self, work: Callable[[], Awaitable[None]]) -> bool:
        """Whether the work ended by itself, and not because the lease was lost."""
        log.info("lease won", lease=str(self.key), identity=self.identity)
        ended = False
        async with anyio.create_task_group() as group:
            scope = group.cancel_scope
            self._move_deadline(scope)
            group.start_soon(self._renew, scope, name=f"renew {self.key}")
            try:
                await work()
                ended = True
            except Conflict:
                # Of one who slept, the fence may stop the work before the deadline does.
                if self.holds:
                    raise
            scope.cancel()
        if ended:
            await self._release()
        else:
            # Not released: writes that were cut short may still be under way, and must arrive within this tenure.
            self._until = _NEVER
            log.warning("lease lost", lease=str(self.key), identity=self.identity)
        return ended

    async def _renew(self, scope: anyio.CancelScope) -> None:
        while True:
            await self._clock.sleep(self._tenure.renew_every)
            try:
                await self._set_holder(self.identity)
            except Error as error:
                log.warning("lease not renewed", lease=str(self.key), error=str(error))
            if not self.holds:
                scope.cancel()
                return
            self._move_deadline(scope)

    async def _set_holder(self, holder: str) -> None:
        try:
            await self._write(self._lease, holder=holder)
        except Conflict:
            # Somebody wrote it: another holder, or a person, or we did and never heard the answer.
            self._lease = await self._api.get(LEASE, self.key.name, self.key.namespace)
            if self._lease.spec.holder_identity == self.identity:
                await self._write(self._lease, holder=holder)
            else:
                self._until = _NEVER

    def _move_deadline(self, scope: anyio.CancelScope) -> None:
        scope.deadline = anyio.current_time() + self._until - self._clock.monotonic()

    async def _win(self) -> None:
        """Waits until nobody holds the lease, and takes it."""
        failures = 0
        while True:
            try:
                return await self._take(await self._free())
            except Conflict:
                # Somebody was quicker, and holds it now.
                failures = 0
            except Error as error:
                failures += 1
                log.warning("lease not seen", lease=str(self.key), error=str(error))
            await self._clock.sleep(BACKOFF.wait(max(failures, 1), self._rng))

    async def _free(self) -> Lease | None:
        """The lease once it may be taken; None where there is none yet. Whoever holds it is watched, not asked."""
        select = Selector(fields=f"metadata.name={self.key.name}")
        lease: Lease | None = None
        # Somebody removed it. Its holder has not heard of that, and works on until its tenure is over.
        gone = False
        # A watch that never says anything is begun anew.
        first = anyio.current_time() + self._tenure.lasts.seconds
        with anyio.CancelScope(deadline=first) as patience:
            async with self._api.watch(LEASE, self.key.namespace, select) as events:
                async for event in events:
                    if isinstance(event, Bookmark):
                        if event.initial_done and lease is None:
                            return None
                        continue
                    lease = event.object
                    if lease.spec.holder_identity in ("", self.identity):
                        return None if isinstance(event, Deleted) else lease
                    patience.deadline = anyio.current_time() + self._patience(lease)
                    gone = isinstance(event, Deleted)
        # Of one who slept, the patience may have run out before it heard of the renewals meanwhile.
        if lease is None or self._patience(lease) > 0:
            raise Retry("kube.watch_ended", f"The watch of the lease {self.key} ended.", hint="Try again.")
        return None if gone else lease

    def _patience(self, lease: Lease) -> float:
        """How long to wait for the next renewal, in seconds. A lease seen twice has not been renewed in between."""
        now = self._clock.monotonic()
        if self._seen[0] != lease.meta.resource_version:
            self._seen = (lease.meta.resource_version, now)
        lasts = max(float(lease.spec.lease_duration_s or 0), self._tenure.lasts.seconds)
        return self._seen[1] + lasts - now

    async def _take(self, lease: Lease | None) -> None:
        if lease is None:
            lease = Lease(meta=ObjectMeta(name=self.key.name, namespace=self.key.namespace))
        transitions = (lease.spec.lease_transitions or 0) + (lease.spec.holder_identity != self.identity)
        spec = replace(
            lease.spec, lease_transitions=transitions, acquire_time=micro_time_text(self._clock.now())
        )
        await self._write(replace(lease, spec=spec), holder=self.identity)

    async def _release(self) -> None:
        if self.holds:
            self._until = _NEVER
            with anyio.move_on_after(RELEASE_S_MAX, shield=True):
                try:
                    await self._set_holder("")
                except Error as error:
                    log.warning("lease not released", lease=str(self.key), error=str(error))

    async def _write(self, lease: Lease, *, holder: str) -> None:
        """Held from before the request was sent: an answer that comes late, or never, does not lengthen the tenure."""
        sent = self._clock.monotonic()
        spec = replace(
            lease.spec,
            holder_identity=holder,
            lease_duration_s=math.ceil(self._tenure.lasts.seconds),
            renew_time=micro_time_text(self._clock.now()),
        )
        wanted = replace(lease, spec=spec)
        written = self._api.replace if lease.meta.resource_version else self._api.create
        self._lease = await written(LEASE, wanted)
        if holder:
            self._until = sent + self._tenure.stop_after.seconds
