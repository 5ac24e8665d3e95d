"""Leader election with a Lease."""

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

# The limit for releasing the lease; if it takes longer, waiting for its expiry is quicker.
RELEASE_S_MAX: Final = 2.0
BACKOFF: Final = Backoff(first=Duration.of(ms=200), most=Duration.of(seconds=5))
_NEVER: Final = float("-inf")


class Fence(Protocol):
    """The check before every write: raises when another process may hold the right to write."""

    def check(self) -> None: ...


class Unfenced:
    """A fence that always passes, for programs that run only once."""

    def check(self) -> None:
        return


UNFENCED: Final = Unfenced()


@dataclass(frozen=True, slots=True)
class LeaderLeaseTiming:
    """The times of a lease: others take over `lasts` after the last renewal they saw; the holder stops earlier.

    The holder stops `stop_after` its last renewal. Each side measures with its own monotonic clock, so only the rates
    of clocks matter. The holder's clock may be slower by the ratio of the two spans before two holders overlap.
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


# A dead leader is replaced within ten seconds, and four renewals in a row may fail before a running one stops.
TENURE: Final = LeaderLeaseTiming(Duration.of(seconds=9), Duration.of(seconds=6), Duration.of(seconds=1.5))


class Election:
    """Contends for one Lease and runs work while it is held. Its `check` is the fence for the writes of that work.

    The work runs in a cancel scope whose deadline moves with each renewal, counted from the time before the renewal was
    sent. A leader that cannot renew has therefore stopped before another may begin.
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
        """The identity must be unique per process: a pod's name is not enough, because its container may be restarted."""
        self.identity = identity
        self.key = lease
        self._api = api
        self._clock = clock
        self._rng = rng
        self._tenure = tenure
        self._lease = Lease()
        # By the monotonic clock; in the past while another process holds the lease.
        self._until = _NEVER
        # The newest version of another holder's lease, and the time when it was first seen.
        self._seen = ("", 0.0)

    @property
    def holds(self) -> bool:
        return self._clock.monotonic() < self._until

    def check(self) -> None:
        if not self.holds:
            raise Conflict(
                "kube.not_leader",
                f"{self.identity} does not hold the lease {self.key}.",
                hint="Leave the work to the holder.",
            )

    async def run(self, work: Callable[[], Awaitable[None]], stopping: anyio.Event | None = None) -> None:
        """Runs the work whenever the lease is held, and returns when it ends by itself or after `stopping`.

        A normal end releases the lease at once, and a lost lease is contended for again. After a cancellation or an
        error the lease expires.
        """
        while True:
            await self._win()
            if await self._lead(work) or (stopping is not None and stopping.is_set()):
                return

    async def _lead(self, work: Callable[[], Awaitable[None]]) -> bool:
        """Runs the work under the lease; true if the work ended by itself, false if the lease was lost."""
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
                # After the process was suspended, the fence may stop the work before the deadline does.
                if self.holds:
                    raise
            scope.cancel()
        if ended:
            await self._release()
        else:
            # Not released: interrupted writes may still be in flight, and must arrive before the lease expires.
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
            # Another holder or a person wrote it, or the response to our own write was lost.
            self._lease = await self._api.get(LEASE, self.key.name, self.key.namespace)
            if self._lease.spec.holder_identity == self.identity:
                await self._write(self._lease, holder=holder)
            else:
                self._until = _NEVER

    def _move_deadline(self, scope: anyio.CancelScope) -> None:
        scope.deadline = anyio.current_time() + self._until - self._clock.monotonic()

    async def _win(self) -> None:
        """Waits until the lease is free, and takes it."""
        failures = 0
        while True:
            try:
                return await self._take(await self._free())
            except Conflict:
                # Another process was quicker and holds it now.
                failures = 0
            except Error as error:
                failures += 1
                log.warning("lease not seen", lease=str(self.key), error=str(error))
            await self._clock.sleep(BACKOFF.wait(max(failures, 1), self._rng))

    async def _free(self) -> Lease | None:
        """Waits until the lease may be taken and returns it; None if it does not exist.

        Watches the lease instead of polling.
        """
        select = Selector(fields=f"metadata.name={self.key.name}")
        lease: Lease | None = None
        # The lease was deleted. Its holder has not noticed, and works until its own deadline.
        gone = False
        # A watch without any event is opened again.
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
        # After the process was suspended, the patience may have ended before the renewals meanwhile were read.
        if lease is None or self._patience(lease) > 0:
            raise Retry("kube.watch_ended", f"The watch of the lease {self.key} ended.", hint="Try again.")
        return None if gone else lease

    def _patience(self, lease: Lease) -> float:
        """The seconds to wait for the next renewal. The same version seen twice means no renewal in between."""
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
        """Writes the lease. Its time counts from before the request, so a late or lost response does not extend it."""
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
