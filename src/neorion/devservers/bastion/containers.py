"""Runs commands in the Pods of users through the API server, and starts their consoles."""

from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Final

import anyio

from neorion.devservers.decide.console import console_pod, is_over, is_running, stuck, unscheduled
from neorion.devservers.model.tenancy import BASTION_ACCOUNT, CONSOLE, own_namespace
from neorion.devservers.ports import RunningCommand
from neorion.keel.base import Conflict, Deadline, Denied, Duration, NotFound, Retry
from neorion.keel.clock import Clock
from neorion.keel.kube.client import Client
from neorion.keel.kube.core import POD, Pod
from neorion.keel.kube.streams import ContainerRef, execute

_PATIENCE: Final = Duration.of(minutes=3)
_POLL: Final = Duration.of(ms=200)
# The API server knows the rights in a new namespace a moment after they are written.
_RIGHTS_PATIENCE_S: Final = 10.0


class ClusterContainers:
    """Consoles run `image`; without one there are no consoles."""

    def __init__(self, client: Client, clock: Clock, image: str = "") -> None:
        self._client = client
        self._clock = clock
        self._image = image

    async def console(self, user: str, tell: Callable[[str], None]) -> ContainerRef:
        if not self._image:
            raise Conflict(
                "devservers.no_console",
                "This bastion has no consoles.",
                hint=f"Name one of your servers, as in ssh {user}+SERVER@HOST.",
            )
        namespace = own_namespace(user)
        pod = await self._find(namespace)
        if pod is None or not is_running(pod) or is_over(pod):
            with anyio.move_on_after(_PATIENCE.seconds):
                await self._start(user, namespace, tell)
                return ContainerRef(CONSOLE, namespace, CONSOLE)
            raise Deadline(
                "devservers.console_not_ready",
                f"The console was not ready after {_PATIENCE}.",
                hint="Log in again in a minute, or ask an administrator.",
            )
        return ContainerRef(CONSOLE, namespace, CONSOLE)

    @asynccontextmanager
    async def execute(
        self, container: ContainerRef, command: Sequence[str], *, tty: bool
    ) -> AsyncGenerator[RunningCommand]:
        async with execute(self._client, container, command, stdin=True, tty=tty) as running:
            yield running

    async def _start(self, user: str, namespace: str, tell: Callable[[str], None]) -> None:
        shown = ""
        while True:
            pod = await self._find(namespace)
            if pod is not None and is_over(pod):
                await self._remove(pod)
            elif pod is None:
                if not shown:
                    shown = "Starting your console."
                    tell(shown)
                await self._create(user)
                continue
            elif is_running(pod):
                return
            else:
                obstacle = stuck(pod)
                if obstacle:
                    raise Conflict(
                        "devservers.console_stuck",
                        f"The console does not start: {obstacle}.",
                        hint="Ask an administrator to check the bastion's console image.",
                    )
                waits = unscheduled(pod)
                if waits and waits != shown:
                    shown = waits
                    tell(f"The console waits for a node: {waits}")
            await self._clock.sleep(_POLL)

    async def _find(self, namespace: str) -> Pod | None:
        latest = self._clock.monotonic() + _RIGHTS_PATIENCE_S
        while True:
            try:
                return await self._client.get(POD, CONSOLE, namespace)
            except NotFound:
                return None
            except Denied:
                if self._clock.monotonic() > latest:
                    raise Retry(
                        "devservers.not_provisioned",
                        f"The namespace {namespace} is not ready yet.",
                        hint="Log in again in a minute.",
                    ) from None
            await self._clock.sleep(_POLL)

    async def _create(self, user: str) -> None:
        # By apply: the API server then checks the bastion's right for this one name.
        # A Conflict means that another bastion made it with other fields.
        with suppress(Conflict):
            await self._client.apply(POD, console_pod(user, self._image), BASTION_ACCOUNT)

    async def _remove(self, pod: Pod) -> None:
        if pod.meta.deleted is None:
            with suppress(NotFound):
                await self._client.delete(POD, CONSOLE, pod.meta.namespace)
