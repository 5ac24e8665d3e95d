"""A command's conversation with the cluster: find it, open, ask, close."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final, TypeVar

from neorion.devservers.cli.options import ClusterSelector
from neorion.devservers.client import DevServerApi, resolve_context
from neorion.keel.base import Duration, Error, Invalid, UnitError
from neorion.keel.cli.kit import Output
from neorion.keel.clock import SystemClock
from neorion.keel.kube.client import connect

T = TypeVar("T")
# Who presses Tab does not wait longer.
_COMPLETED_S: Final = 2.0


def run_with_api(out: Output, where: ClusterSelector, question: Callable[[DevServerApi], Awaitable[T]]) -> T:
    """Runs `question` on the servers of the place that the user means."""
    place = resolve_context(where.namespace, where.context, where.kubeconfig, out.env)

    async def converse() -> T:
        async with connect(place.cluster, "devctl") as client:
            return await question(DevServerApi(client, place.namespace, SystemClock()))

    try:
        # Not anyio's: what that brings along takes as long as the request itself, and the short questions need none of it.
        return asyncio.run(converse())
    except BaseExceptionGroup as group:
        from neorion.keel.run import only_error  # noqa: PLC0415 -- most questions are answered

        raise only_error(group) from None


def completion_names(where: ClusterSelector, *, flavors: bool) -> list[str]:
    """Names for shell completion. Returns none on any failure and after a short time limit."""

    async def names() -> list[str]:
        place = resolve_context(where.namespace, where.context, where.kubeconfig)
        async with asyncio.timeout(_COMPLETED_S), connect(place.cluster, "devctl") as client:
            fleet = DevServerApi(client, place.namespace, SystemClock())
            return [one.meta.name for one in await (fleet.flavors() if flavors else fleet.servers())]

    try:
        return asyncio.run(names())
    except (Error, TimeoutError, BaseExceptionGroup):
        return []


def parse_timeout(text: str) -> Duration:
    try:
        return Duration.parse(text)
    except UnitError:
        raise Invalid(
            "devservers.timeout", f'"{text}" is no length of time.', hint="Write one such as 30s or 10m."
        ) from None
