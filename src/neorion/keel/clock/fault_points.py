"""Named places in production code where a simulation may let the rare thing happen.

    await point("store.commit.before")

Outside a simulation a point does nothing and costs about as much as calling an empty coroutine.
"""

from collections.abc import Awaitable, Callable
from contextvars import ContextVar, Token

Hook = Callable[[str], Awaitable[None]]

_hook: ContextVar[Hook | None] = ContextVar("neorion_fault_hook", default=None)


async def fault_point(name: str) -> None:
    """Marks a point in the code, `package.step.when`. A simulation may delay, raise or crash the process here."""
    hook = _hook.get()
    if hook is not None:
        await hook(name)


def set_fault_hook(hook: Hook) -> Token[Hook | None]:
    """Installs `hook` for every fault point reached in this context. Only simulations call this."""
    return _hook.set(hook)
