"""Session of a command with the controller, with readable errors for a missing controller or token."""

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
    action: Callable[[AsyncIrisClient], Awaitable[T]],
    endpoint: Endpoint | None = None,
) -> T:
    """Runs `action` with a new client, by default with the environment's endpoint at that controller."""
    endpoint = endpoint or resolve_endpoint(controller, None, "", out.env)

    async def with_client() -> T:
        async with AsyncIrisClient.at(endpoint) as client:
            return await action(client)

    try:
        return anyio.run(with_client)
    except BaseExceptionGroup as group:
        raise _readable(only_error(group), controller, endpoint.token) from None
    except (Retry, Unauthenticated) as error:
        raise _readable(error, controller, endpoint.token) from None


def _readable(error: BaseException, controller: str, token: str | None) -> BaseException:
    if isinstance(error, Retry) and error.code == "rpc.unreachable":
        return Retry(
            "iris.unreachable",
            f"No controller answers at {controller}.",
            hint="Start one with: iris cluster start --local --detach, or name another with --controller URL.",
        )
    # Without a token there is also no pin to verify the controller's key.
    if isinstance(error, Unauthenticated) and not token and error.code in ("rpc.no_token", "rpc.tls"):
        return Unauthenticated(
            "iris.token",
            f"The controller at {controller} requires a token.",
            hint="Set IRIS_TOKEN to the token that the controller's administrator gave you.",
        )
    return error
