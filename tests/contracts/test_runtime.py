"""The promises of a runtime, kept by processes and by the double in memory."""

import math
import pickle
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, nullcontext
from pathlib import Path

import anyio
import pytest

from neorion.iris.adapters.runtimes.process import result_file
from neorion.iris.adapters.runtimes.process.runtime import ProcessRuntime
from neorion.iris.model import Command
from neorion.iris.ports import AttemptExit, AttemptSpec, ExitKind
from neorion.iris.testing.memory_runtime import MemoryRuntime, ScriptedOutcome
from neorion.keel.base import Duration
from neorion.keel.clock import SystemClock
from tests.contracts.runtime import IN_PROCESSES, Rig, RuntimeContract, Words

pytestmark = pytest.mark.anyio

IN_MEMORY = Words(
    exits=lambda code: ("exit", str(code)),
    dies_of=lambda number: ("signal", str(number)),
    says=lambda text: ("say", text),
    waits=("wait",),
    is_deaf=("deaf",),
)

MEANINGS: dict[str, Callable[[str], ScriptedOutcome]] = {
    "exit": lambda code: ScriptedOutcome(end=AttemptExit(ExitKind.EXIT, int(code))),
    "signal": lambda number: ScriptedOutcome(end=AttemptExit(ExitKind.SIGNAL, int(number))),
    "say": lambda text: ScriptedOutcome(greeting=text.encode()),
    "wait": lambda _: ScriptedOutcome(run_s=math.inf, greeting=b"ready\n"),
    "deaf": lambda _: ScriptedOutcome(run_s=math.inf, greeting=b"ready\n", deaf=True),
}


def fate_of(order: AttemptSpec) -> ScriptedOutcome:
    if not isinstance(order.entry, Command):
        return _called(order)
    word, *rest = order.entry.argv
    if word not in MEANINGS:
        return ScriptedOutcome(
            end=AttemptExit(ExitKind.NOT_STARTED, 127, f'There is no program "{word}" on this worker.')
        )
    return MEANINGS[word](" ".join(rest))


def _called(order: AttemptSpec) -> ScriptedOutcome:
    assert order.function is not None
    assert order.input is not None
    function = pickle.loads(Path(order.function).read_bytes())  # noqa: S301 -- made above
    args, kwargs = pickle.loads(Path(order.input).read_bytes())  # noqa: S301 -- made above
    result = Path(order.input).with_suffix(".value")
    try:
        result_file.write_value(str(result), function(*args, **kwargs), flush=False)
        code = 0
    except Exception as error:  # noqa: BLE001 -- the caller's to see
        result_file.write_error(str(result), error, flush=False)
        code = 1
    return ScriptedOutcome(end=AttemptExit(ExitKind.EXIT, code), value=result.read_bytes())


@pytest.fixture(params=["memory", "process"])
async def rig(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Rig]:
    async with AsyncExitStack() as stack:
        if request.param == "memory":
            machine = MemoryRuntime(tmp_path, SystemClock(), fate_of)
            engine = await stack.enter_async_context(anyio.create_task_group())
            engine.start_soon(machine.run)
            yield Rig(lambda: nullcontext(machine), IN_MEMORY, tmp_path)
            engine.cancel_scope.cancel()
        else:
            yield Rig(lambda: ProcessRuntime(tmp_path / "runtime", SystemClock()), IN_PROCESSES, tmp_path)
            # The last life ends the lease, and with it everything: no test leaves a process behind.
            async with ProcessRuntime(tmp_path / "runtime", SystemClock()) as last:
                await last.renew(Duration(1))


class TestRuntime(RuntimeContract):
    """On this machine."""
