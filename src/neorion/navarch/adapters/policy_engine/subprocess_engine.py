"""Judges in a child process with limits on memory and time, because CEL itself has none.

Requests and answers are lines of JSON. A child that takes too long, or dies of its limits, is replaced, and what it was
asked is answered for it: such an event leaves the node degraded, and says why.
"""

import sys
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import islice
from typing import Any, Final, Self

import anyio
import msgspec
from anyio.abc import Process
from anyio.streams.buffered import BufferedByteReceiveStream

from neorion.keel.telemetry import logger
from neorion.navarch.adapters.policy_engine.inline import known
from neorion.navarch.decide.policy import CompiledPolicy, Policy, compiled
from neorion.navarch.model import Health, PolicyResult

log = logger(__name__)

# The child limits its own processor time; this is for one that hangs, on a machine that is busy with other things.
SECONDS_MAX: Final = 15.0
SITUATIONS_MAX: Final = 500
# Of situations that failed as a batch: as many as this may fail alone, each for as long as the limit of the child.
FAILURES_MAX: Final = 3
_LINE_MAX: Final = 8 * 1024 * 1024
_CHILD: Final = "neorion.navarch.adapters.policy_engine.worker"
_VERDICTS = msgspec.json.Decoder(list[PolicyResult])
_FAILED: Final = PolicyResult(
    "", Health.DEGRADED, sentence="The policy took too much time or memory to evaluate this event."
)


@dataclass(slots=True, eq=False)
class _Request:
    policy: str
    situations: Sequence[Mapping[str, Any]]
    verdicts: Sequence[PolicyResult] = ()
    answered: bool = False


class SubprocessPolicyEngine:
    """Use it as a context: the child lives as long as the block."""

    def __init__(self, policies: Mapping[str, Policy], *, seconds: float = SECONDS_MAX) -> None:
        # Refused here, where the file that brought them can still be named.
        self._policies = dict(policies)
        self._known = _compiled(policies)
        self._rules: bytes = _encoded(policies)
        self._seconds = seconds
        self._turn = anyio.Lock()
        self._waiting = deque[_Request]()
        self._child: Process | None = None
        self._answers: BufferedByteReceiveStream | None = None

    def variables(self, policy: str) -> frozenset[str]:
        return known(policy, self._known).sees

    async def evaluate(self, policy: str, situations: Sequence[Mapping[str, Any]]) -> Sequence[PolicyResult]:
        known(policy, self._known)
        mine = _Request(policy, situations)
        self._waiting.append(mine)
        try:
            async with self._turn:
                # The holder of the lock also evaluates the requests that wait, so this one may be answered already.
                while not mine.answered:
                    await self._evaluate_batch()
        finally:
            if not mine.answered:
                self._waiting.remove(mine)
        return mine.verdicts

    async def reload(self, policies: Mapping[str, Policy]) -> list[str]:
        """Judges by these from now on, and tells which are others; what is being judged is judged by those of before."""
        known, rules = _compiled(policies), _encoded(policies)
        async with self._turn:
            names = sorted(self._policies.keys() | policies.keys())
            others = [name for name in names if self._policies.get(name) != policies.get(name)]
            if others:
                self._policies, self._known, self._rules = dict(policies), known, rules
                await self._kill()
        return others

    async def _evaluate_batch(self) -> None:
        """The first in line, and those behind it as long as they are few enough and go by the same policy."""
        policy, batch, many = self._waiting[0].policy, list[_Request](), 0
        while self._waiting and self._waiting[0].policy == policy:
            many += len(self._waiting[0].situations)
            if batch and many > SITUATIONS_MAX:
                break
            batch.append(self._waiting.popleft())
        situations = [one for asked in batch for one in asked.situations]
        verdicts: list[PolicyResult] = []
        try:
            # A caller that goes away must not leave an answer in the pipe, for the next one to take for its own.
            with anyio.CancelScope(shield=True):
                for begin in range(0, len(situations), SITUATIONS_MAX):
                    verdicts += await self._ask(policy, situations[begin : begin + SITUATIONS_MAX])
        except BaseException:
            self._waiting.extendleft(reversed(batch))
            raise
        given = iter(verdicts)
        for asked in batch:
            asked.verdicts, asked.answered = list(islice(given, len(asked.situations))), True

    async def _ask(self, policy: str, situations: Sequence[Mapping[str, Any]]) -> Sequence[PolicyResult]:
        line = msgspec.json.encode({"policy": policy, "situations": situations})
        try:
            with anyio.fail_after(self._seconds):
                return await self._exchange(line)
        except (
            TimeoutError,
            OSError,
            anyio.EndOfStream,
            anyio.BrokenResourceError,
            anyio.IncompleteRead,
        ) as error:
            await self._kill()
            log.warning("the judge was replaced", policy=policy, why=type(error).__name__)
        return [_FAILED] if len(situations) == 1 else await self._ask_alone(policy, situations)

    async def _ask_alone(
        self, policy: str, situations: Sequence[Mapping[str, Any]]
    ) -> Sequence[PolicyResult]:
        """Evaluates each situation alone, because one of them may have failed the others.

        After a few failures the policy itself is to blame. The rest are not tried, because policies of other pools wait.
        """
        results: list[PolicyResult] = []
        failures = 0
        for one in situations:
            results += [_FAILED] if failures >= FAILURES_MAX else await self._ask(policy, [one])
            failures += results[-1] is _FAILED
        return results

    async def _exchange(self, line: bytes) -> Sequence[PolicyResult]:
        if self._child is None or self._child.returncode is not None:
            await self._start()
        child, answers = self._child, self._answers
        if child is None or child.stdin is None or answers is None:
            raise BrokenPipeError
        await child.stdin.send(line + b"\n")
        return _VERDICTS.decode(await answers.receive_until(b"\n", _LINE_MAX))

    async def _start(self) -> None:
        self._child = await anyio.open_process([sys.executable, "-P", "-m", _CHILD], stderr=None)
        if self._child.stdin is None or self._child.stdout is None:
            raise BrokenPipeError
        self._answers = BufferedByteReceiveStream(self._child.stdout)
        await self._child.stdin.send(self._rules + b"\n")
        # It has compiled them, and its imports are paid for.
        await self._answers.receive_until(b"\n", _LINE_MAX)

    async def _kill(self) -> None:
        child, self._child, self._answers = self._child, None, None
        if child is not None:
            with anyio.CancelScope(shield=True):
                if child.returncode is None:
                    child.kill()
                await child.aclose()

    async def __aenter__(self) -> Self:
        # The first start takes a moment; events should not wait for it.
        await self._start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._kill()


def _compiled(policies: Mapping[str, Policy]) -> dict[str, CompiledPolicy]:
    return {name: compiled(policy) for name, policy in policies.items()}


def _encoded(policies: Mapping[str, Policy]) -> bytes:
    return msgspec.json.encode({name: asdict(policy) for name, policy in policies.items()})
