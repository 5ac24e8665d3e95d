"""Carries out drains: asks pods to leave within their disruption budgets, and makes them leave when time is over."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

import anyio

from neorion.keel.base import Duration, Error, NotFound
from neorion.keel.clock import Clock
from neorion.keel.kube import DeleteOptions, KubeApi, Selector, condition
from neorion.keel.kube.core import POD
from neorion.keel.kube.core import Node as KubeNode
from neorion.navarch.adapters.kube.drain import (
    DrainContext,
    DrainRules,
    PodAction,
    PodEviction,
    plan_evictions,
)

# Nodes hold about a hundred pods; the API server has others to serve.
_AT_ONCE: Final = 16


class Evictor:
    """One look at a node's pods, and one request for each that should go. Nothing is remembered: the cluster is the state."""

    def __init__(self, api: KubeApi, rules: DrainRules, clock: Clock) -> None:
        self._api = api
        self._rules = rules
        self._clock = clock

    async def drain(self, kube: KubeNode, left: Duration) -> list[PodEviction]:
        """The pods that are still there and must not be, each with what keeps it."""
        listed = await self._api.list(POD, select=Selector(fields=f"spec.nodeName={kube.meta.name}"))
        ready = condition(kube.status.conditions, "Ready")
        scene = DrainContext(self._clock.now(), left, ready is None or not ready.holds, self._rules)
        found = [one for one in plan_evictions(listed.items, scene) if one.way is not PodAction.STAYS]
        return await self._ask(found)

    async def _ask(self, found: Sequence[PodEviction]) -> list[PodEviction]:
        """A pod that was asked now is still there: a pod with nothing to do may be gone before the next look."""
        answers: list[PodEviction | None] = list(found)
        limit = anyio.Semaphore(_AT_ONCE)

        async def ask(place: int, one: PodEviction) -> None:
            async with limit:
                answers[place] = await self._ask_one(one)

        async with anyio.create_task_group() as group:
            for place, one in enumerate(found):
                if one.way in (PodAction.EVICT, PodAction.DELETE):
                    group.start_soon(ask, place, one)
        return [one for one in answers if one is not None]

    async def _ask_one(self, one: PodEviction) -> PodEviction | None:
        meta = one.pod.meta
        how = DeleteOptions(grace=one.grace, uid=meta.uid)
        try:
            if one.way is PodAction.EVICT:
                await self._api.evict(meta.name, meta.namespace, how)
            else:
                await self._api.delete(POD, meta.name, meta.namespace, how)
        except NotFound:
            return None
        except Error as error:
            # A budget, a right that is missing, a server that is busy: the sentence names it, and the next look tries again.
            return replace(one, why=f"cannot leave yet: {error.sentence}")
        return replace(one, way=PodAction.STOPPING, why=one.why or "is asked to leave")
