"""A command's session with the control plane, and the errors when it cannot be reached."""

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TypeVar

import anyio

from neorion.keel.base import Retry, Unauthenticated
from neorion.keel.cli.kit import Output
from neorion.keel.rpc import ClientTls
from neorion.keel.run import only_error
from neorion.navarch.client import NavarchClient

T = TypeVar("T")


def ask(out: Output, server: str, question: Callable[[NavarchClient], Awaitable[T]]) -> T:
    """Runs `question` with a client of its own."""
    token, ca = out.env.get("NAVARCH_AUTH_TOKEN") or None, out.env.get("NAVARCH_CA_FILE")
    tls = ClientTls(ca=Path(ca)) if ca else None

    async def converse() -> T:
        async with NavarchClient.remote(server, token=token, tls=tls) as client:
            return await question(client)

    try:
        return anyio.run(converse)
    except BaseExceptionGroup as group:
        raise _with_hint(only_error(group), server) from None
    except (Retry, Unauthenticated) as error:
        raise _with_hint(error, server) from None


def _with_hint(error: BaseException, server: str) -> BaseException:
    if isinstance(error, Retry) and error.code == "rpc.unreachable":
        return Retry(
            "navarch.unreachable",
            f"No control plane answers at {server}.",
            hint="Start one: navarch serve --config FILE; or name another: --server URL.",
        )
    if isinstance(error, Unauthenticated):
        return Unauthenticated(
            error.code, error.sentence, hint="Set NAVARCH_AUTH_TOKEN to the operator's token."
        )
    return error
