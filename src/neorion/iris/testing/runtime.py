"""A runtime in memory, and what tests of any runtime wait for."""

import pickle
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, aclosing, suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Self

import anyio

from neorion.iris.adapters.runtimes.process import kernel, outcome
from neorion.iris.model import AttemptId, Command
from neorion.iris.ports import End, EndKind, Order, Phase, Runtime, Seen, Stats
from neorion.keel.base import Conflict, Duration, NotFound
from neorion.keel.clock import Clock

_NOTHING = Duration(0)


@dataclass(frozen=True, slots=True)
class Play:
    """What an attempt does: it builds, says something, and ends after a while; without `lasts` only when it is ended."""

    end: End = field(default=End(EndKind.EXIT))
    lasts: Duration | None = _NOTHING
    builds: Duration = _NOTHING
    says: str = ""
    heeds_term: bool = True


def by_word(order: Order) -> Play:
    """Commands by their first word: `exit 3`, `signal 9`, `say hello`, `sleep 2s`, `wait`, `deaf`; all others are not found."""
    assert isinstance(order.entry, Command)  # noqa: S101 -- calls are called
    word, *rest = order.entry.argv
    known = _WORDS.get(word)
    if known is None:
        return Play(End(EndKind.NOT_STARTED, 127, f'There is no program "{word}" on this worker.'))
    return known(" ".join(rest))


_WORDS: dict[str, Callable[[str], Play]] = {
    "exit": lambda code: Play(End(EndKind.EXIT, int(code))),
    "signal": lambda number: Play(End(EndKind.SIGNAL, int(number))),
    "say": lambda text: Play(says=text),
    "sleep": lambda span: Play(lasts=Duration.parse(span)),
    "wait": lambda _: Play(lasts=None, says="ready\n"),
    "deaf": lambda _: Play(lasts=None, says="ready\n", heeds_term=False),
}


@dataclass(slots=True, eq=False)
class _Life:
    """An attempt and, while it lives, what would end it."""

    seen: Seen
    heeds_term: bool = True
    cause: End | None = None
    scope: anyio.CancelScope = field(default_factory=anyio.CancelScope)


class MemoryHost(AbstractAsyncContextManager["MemoryHost"]):
    """A machine whose attempts are plays. Runtimes on it come and go like a worker's lives; attempts stay.

    Calls are called in this process, at once; `script` says what commands do.
    """

    def __init__(self, root: Path, clock: Clock, script: Callable[[Order], Play] = by_word) -> None:
        self.root = root
        self.lives: dict[AttemptId, _Life] = {}
        self._clock = clock
        self._script = script
        self._news = anyio.Event()
        self._lease = anyio.CancelScope()
        self._lease_until = clock.monotonic()
        self._group = anyio.create_task_group()

    async def __aenter__(self) -> Self:
        await self._group.__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool | None:
        self._group.cancel_scope.cancel()
        return await self._group.__aexit__(kind, error, trace)

    def runtime(self) -> "MemoryRuntime":
        return MemoryRuntime(self)

    def renew(self, life: Duration) -> None:
        self._lease_until = self._clock.monotonic() + life.seconds
        self._lease.cancel()
        self._lease = anyio.CancelScope()
        self._group.start_soon(self._hold_lease, self._lease, life)

    def start(self, order: Order) -> None:
        if order.attempt in self.lives:
            return
        if self._clock.monotonic() >= self._lease_until:
            raise Conflict("runtime.no_lease", "The lease is over.", hint="renew the lease first")
        life = self.lives[order.attempt] = _Life(Seen(order.attempt, Phase.BUILDING))
        self._group.start_soon(self._live, order, life)
        self._change(life, life.seen)

    def stop(self, life: _Life, grace: Duration) -> None:
        if life.seen.end is None and life.cause is None:
            life.cause = End(EndKind.STOPPED)
            if life.heeds_term:
                life.scope.cancel()
            else:
                self._group.start_soon(self._cancel_after, life.scope, grace)

    async def changed(self) -> None:
        await self._news.wait()

    async def _live(self, order: Order, life: _Life) -> None:
        end = End(EndKind.STOPPED)
        with life.scope:
            end = await self._play(order, life)
        self._change(life, Seen(order.attempt, Phase.ENDED, life.cause or end))

    async def _play(self, order: Order, life: _Life) -> End:
        play = self._script(order) if isinstance(order.entry, Command) else Play()
        life.heeds_term = play.heeds_term
        if play.builds:
            await self._clock.sleep(play.builds)
        if play.end.kind is EndKind.NOT_STARTED:
            return play.end
        self.log(order.attempt).write_text(play.says)
        self._change(life, Seen(order.attempt, Phase.RUNNING))
        with anyio.move_on_after(order.run_limit.seconds if order.run_limit else None):
            if not isinstance(order.entry, Command):
                return self._call(order)
            if play.lasts is None:
                await anyio.sleep_forever()
            else:
                await self._clock.sleep(play.lasts)
            return play.end
        return End(EndKind.TIMED_OUT)

    def _call(self, order: Order) -> End:
        home = self.root / order.attempt
        home.mkdir()
        result = home / "result"
        try:
            assert order.function is not None  # noqa: S101 -- a call has one
            function = pickle.loads(Path(order.function).read_bytes())  # noqa: S301 -- a test's own
            given = Path(order.input).read_bytes() if order.input else pickle.dumps(((), {}))
            args, kwargs = pickle.loads(given)  # noqa: S301 -- as above
            value = function(*args, **kwargs)
        except Exception as error:  # noqa: BLE001 -- the caller's to see
            outcome.write_error(str(result), error, flush=False)
            return End(EndKind.EXIT, 1, result=result)
        well = outcome.write_value(str(result), value, flush=False)
        return End(EndKind.EXIT, 0 if well else 1, result=result)

    def log(self, attempt: AttemptId) -> Path:
        return self.root / f"{attempt}.log"

    def _change(self, life: _Life, seen: Seen) -> None:
        life.seen = seen
        news, self._news = self._news, anyio.Event()
        news.set()

    async def _hold_lease(self, scope: anyio.CancelScope, span: Duration) -> None:
        with scope:
            await self._clock.sleep(span)
            for life in self.lives.values():
                if life.seen.end is None:
                    life.cause = End(EndKind.LOST)
                    life.scope.cancel()

    async def _cancel_after(self, scope: anyio.CancelScope, span: Duration) -> None:
        await self._clock.sleep(span)
        scope.cancel()


class MemoryRuntime:
    """One life of a worker's runtime on a `MemoryHost`."""

    def __init__(self, host: MemoryHost) -> None:
        self._host = host

    async def start(self, order: Order) -> None:
        self._host.start(order)

    async def stop(self, attempt: AttemptId, grace: Duration) -> None:
        self._host.stop(self._life(attempt), grace)

    async def forget(self, attempt: AttemptId) -> None:
        life = self._host.lives.get(attempt)
        if life is not None and life.seen.end is None:
            raise Conflict("runtime.running", "The attempt has not ended.", hint="stop it first")
        if self._host.lives.pop(attempt, None) is not None:
            with suppress(FileNotFoundError):
                (self._host.root / attempt / "result").unlink()

    async def seen(self) -> Sequence[Seen]:
        return [life.seen for life in self._host.lives.values()]

    async def changes(self) -> AsyncGenerator[Sequence[Seen], None]:
        told: dict[AttemptId, Seen] = {}
        yield [told.setdefault(life.seen.attempt, life.seen) for life in self._host.lives.values()]
        while True:
            now = {attempt: life.seen for attempt, life in self._host.lives.items()}
            fresh = [seen for attempt, seen in now.items() if told.get(attempt) is not seen]
            told = now
            if fresh:
                yield fresh
            else:
                await self._host.changed()

    async def renew(self, life: Duration) -> None:
        self._host.renew(life)

    @property
    def boot(self) -> str:
        return "the only one"

    async def stats(self, attempt: AttemptId) -> Stats:
        return Stats(0.0, 0, int(self._life(attempt).seen.end is None))

    def log(self, attempt: AttemptId) -> Path:
        return self._host.log(attempt)

    def _life(self, attempt: AttemptId) -> _Life:
        life = self._host.lives.get(attempt)
        if life is None:
            raise NotFound("runtime.attempt", f"There is no attempt {attempt} here.", hint="see `seen`")
        return life


async def reaches(runtime: Runtime, attempt: AttemptId, phase: Phase) -> Seen:
    """The attempt, as soon as it is in this phase or past it."""
    order = list(Phase)
    async with aclosing(runtime.changes()) as changes:
        async for batch in changes:
            for seen in batch:
                if seen.attempt == attempt and order.index(seen.phase) >= order.index(phase):
                    return seen
    raise AssertionError("the stream of changes ended")


async def ended(runtime: Runtime, attempt: AttemptId) -> End:
    end = (await reaches(runtime, attempt, Phase.ENDED)).end
    assert end is not None  # noqa: S101 -- what has ended has an end
    return end


async def said(runtime: Runtime, attempt: AttemptId, text: str) -> None:
    """Waits until the attempt's log holds the text."""
    await reaches(runtime, attempt, Phase.RUNNING)
    await written(Path(runtime.log(attempt)), text)


async def written(path: Path, text: str) -> None:
    """Waits, by the kernel's word and not by looking again and again, until the file holds the text."""
    with kernel.Modifications() as modifications:
        while True:
            modifications.watch(str(path))
            if _holds(path, text):
                return
            await anyio.wait_readable(modifications.fd)
            modifications.read()


def _holds(path: Path, text: str) -> bool:
    return text in path.read_text(errors="replace")
