"""A whole process: one crew, signals that end it in order, and an end that always comes."""

import asyncio
import faulthandler
import os
import signal
from collections.abc import Awaitable, Callable

import anyio

from neorion.keel.base import Error
from neorion.keel.base.units import Duration
from neorion.keel.run.supervisor import Supervisor
from neorion.keel.telemetry import logger

log = logger(__name__)

# What a cancelled task may still need; past it the process shows where it hangs and ends.
HANG_S_MAX = 5.0


def run_process(
    main: Callable[[Supervisor], Awaitable[None]],
    grace: Duration = Duration.of(seconds=10),
    loop_factory: Callable[[], asyncio.AbstractEventLoop] | None = None,
) -> None:
    """Runs `main` until it returns, fails, or SIGTERM or SIGINT arrives. When it returns, the rest of its crew is cancelled.

    The first signal stops the crew within `grace`, the second cancels it at once, the third ends the process. If the
    cancelled crew has not ended a few seconds later, the stacks of all threads are printed and the process exits with 1.
    `loop_factory` makes another event loop than asyncio's own.
    """
    options = {"loop_factory": loop_factory} if loop_factory else {}
    anyio.run(_main, main, grace, backend_options=options)


async def _main(main: Callable[[Supervisor], Awaitable[None]], grace: Duration) -> None:
    crew = Supervisor(grace)

    async def main_then_end() -> None:
        await main(crew)
        # It has ended what it began, in its order; what is left only waits for more to do.
        crew.cancel()

    try:
        async with anyio.create_task_group() as outer:
            outer.start_soon(_handle_signals, crew, grace)
            async with crew:
                crew.spawn("main", main_then_end)
            outer.cancel_scope.cancel()
    except BaseExceptionGroup as group:
        raise only_error(group) from None
    finally:
        faulthandler.cancel_dump_traceback_later()


async def _handle_signals(crew: Supervisor, grace: Duration) -> None:
    with anyio.open_signal_receiver(signal.SIGTERM, signal.SIGINT) as signals:
        heard = 0
        async for number in signals:
            heard += 1
            log.info("signal", name=number.name, heard=heard)
            match heard:
                case 1:
                    crew.stop()
                    faulthandler.dump_traceback_later(grace.seconds + HANG_S_MAX, exit=True)
                case 2:
                    crew.cancel()
                    faulthandler.dump_traceback_later(HANG_S_MAX, exit=True)
                case _:
                    os._exit(128 + number)


def only_error(group: BaseExceptionGroup[BaseException]) -> BaseException:
    """The one error inside nested groups; the group itself where there are several.

    Several tasks that end for the same reason, by its code, ended of one error.
    """
    first, *others = _leaves(group)
    same = isinstance(first, Error) and all(
        isinstance(error, Error) and error.code == first.code for error in others
    )
    return first if same or not others else group


def _leaves(group: BaseExceptionGroup[BaseException]) -> list[BaseException]:
    found: list[BaseException] = []
    for error in group.exceptions:
        match error:
            case BaseExceptionGroup():
                found += _leaves(error)
            case _:
                found.append(error)
    return found
