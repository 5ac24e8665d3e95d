"""A command's conversation with the controller: open, ask, close; and what to say when nobody answers."""

from collections.abc import Awaitable, Callable
from typing import TypeVar

import anyio

from neorion.iris.client import AsyncIrisClient
from neorion.iris.client.endpoint import Endpoint, resolve_endpoint
from neorion.keel.base import Retry, Unauthenticated
from neorion.keel.cli.kit import Output
from neorion.keel.run import only_error

T = TypeVar("T")


def ask(
    out: Output,
    controller: str,
    question: Callable[[AsyncIrisClient], Awaitable[T]],
    place: Endpoint | None = None,
) -> T:
    """Runs `question` with a client of its own, in the environment's place at that controller if no other is given."""
    endpoint = place or resolve_endpoint(controller, None, "", out.env)

    async def converse() -> T:
        async with AsyncIrisClient.at(endpoint) as client:
            return await question(client)

    try:
        return anyio.run(converse)
    except BaseExceptionGroup as group:
        raise _told(only_error(group), controller, endpoint.token) from None
    except (Retry, Unauthenticated) as error:
        raise _told(error, controller, endpoint.token) from None


def _told(error: BaseException, controller: str, token: str | None) -> BaseException:
    if isinstance(error, Retry) and error.code == "rpc.unreachable":
        return Retry(
            "iris.unreachable",
            f"No controller answers at {controller}.",
            hint="Start one here: iris cluster start --local --detach; or name another: --controller URL.",
        )
    # Without a token there is no pin either, by which the controller's key would be known.
    if isinstance(error, Unauthenticated) and not token and error.code in ("rpc.no_token", "rpc.tls"):
        return Unauthenticated(
            "iris.token",
            f"The controller at {controller} wants to know who you are.",
            hint="Set IRIS_TOKEN to the token that the controller's administrator gave you.",
        )
    return error
