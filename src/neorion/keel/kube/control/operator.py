"""An operator process: informers that are always in sync, and controllers that run while the lease is leads."""

from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import anyio

from neorion.keel.base import Finding, Severity
from neorion.keel.kube.control.controller import Controller
from neorion.keel.kube.control.election import Election
from neorion.keel.kube.control.events import EventRecorder
from neorion.keel.kube.control.reflector import InformerFactory


class Operator:
    """Runs informers, leader election and controllers. Of several replicas one works, and the others are ready."""

    def __init__(
        self,
        informers: InformerFactory,
        controllers: Sequence[Controller[Any]],
        election: Election | None = None,
        recorder: EventRecorder | None = None,
        first: Callable[[], Awaitable[None]] | None = None,
    ) -> None:
        """`first` runs once the lease is leads, before any controller begins."""
        self._informers = informers
        self._controllers = controllers
        self._election = election
        self._recorder = recorder
        self._first = first

    async def run(self, stopping: anyio.Event) -> None:
        """Runs until `stopping`.

        Reconciles under way are then finished and the lease is released, so another replica continues.
        """
        async with anyio.create_task_group() as group:
            group.start_soon(self._informers.run, name="mirrors")
            if self._recorder is not None:
                group.start_soon(self._recorder.run, name="events")
            with anyio.CancelScope() as waiting:
                group.start_soon(self._stop, stopping, waiting, name="stop")
                # A replica that takes the lease before its informers are in sync would hold it without working.
                await self._informers.wait_synced()
                if self._election is None:
                    await self._work()
                else:
                    await self._election.run(self._work, stopping)
            group.cancel_scope.cancel()

    def health(self) -> list[Finding]:
        """Findings for a probe or a person. A replica that waits for the lease is healthy."""
        findings = [
            Finding(Severity.WARNING, "kube.watch_broken", "watch", trouble, "Wait for the next try.")
            for trouble in self._informers.troubles
        ]
        findings += [
            Finding(
                Severity.WARNING,
                "kube.unreadable",
                "mirrors",
                sentence,
                "Correct them, or run a newer program.",
            )
            for sentence in self._informers.unreadable
        ]
        if not self._informers.synced:
            findings.append(
                Finding(Severity.ERROR, "kube.not_synced", "mirrors", "Not all objects have been seen yet.")
            )
        for controller in self._controllers:
            if controller.failing:
                sentence = f"{controller.failing} keys fail and are tried again."
                findings.append(Finding(Severity.WARNING, "kube.keys_fail", controller.name, sentence))
        return findings

    async def _work(self) -> None:
        if self._first is not None:
            await self._first()
        async with anyio.create_task_group() as group:
            for controller in self._controllers:
                group.start_soon(controller.run, name=controller.name)

    async def _stop(self, stopping: anyio.Event, waiting: anyio.CancelScope) -> None:
        await stopping.wait()
        for controller in self._controllers:
            controller.stop()
        # The holder of the lease finishes its work and releases the lease itself.
        leads = self._election is not None and self._election.holds
        if not leads and not any(controller.running for controller in self._controllers):
            waiting.cancel()
