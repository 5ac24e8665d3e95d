"""A command's conversation with the cluster: find it, open, ask, close."""

from collections.abc import Awaitable, Callable
from typing import TypeVar

import anyio

from neorion.devservers.cli.options import Where
from neorion.devservers.client import Fleet, find_place
from neorion.keel.base import Duration, Invalid, UnitError
from neorion.keel.cli.kit import Output, require_extra
from neorion.keel.clock import SystemClock
from neorion.keel.kube.client import connect
from neorion.keel.run import only_error

T = TypeVar("T")


def ask(out: Output, where: Where, question: Callable[[Fleet], Awaitable[T]]) -> T:
    """Runs `question` on the servers of the place that the user means."""
    require_extra("kube")
    place = find_place(where.namespace, where.context, where.kubeconfig, out.env)

    async def converse() -> T:
        async with connect(place.cluster, "devctl") as client:
            return await question(Fleet(client, place.namespace, SystemClock()))

    try:
        return anyio.run(converse)
    except BaseExceptionGroup as group:
        raise only_error(group) from None


def patience(text: str) -> Duration:
    try:
        return Duration.parse(text)
    except UnitError:
        raise Invalid(
            "devservers.timeout", f'"{text}" is no length of time.', hint="Write one such as 30s or 10m."
        ) from None
