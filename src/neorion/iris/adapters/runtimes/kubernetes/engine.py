"""The container engine over the Kubernetes API."""

from collections.abc import AsyncGenerator, Sequence
from dataclasses import replace

import anyio

from neorion.iris.adapters.runtimes.container.engine import ContainerSpec, ContainerState, ContainerStatus
from neorion.iris.adapters.runtimes.kubernetes.manifest import pod_manifest, pod_name
from neorion.iris.adapters.runtimes.kubernetes.settings import GANG_SERVICE, WORKER_LABEL, PodSettings
from neorion.iris.adapters.runtimes.kubernetes.status import attempt_of, container_status
from neorion.iris.model import AttemptId
from neorion.keel.base import Duration, NotFound, QuotaExceeded, Retry
from neorion.keel.clock import Clock, Rng
from neorion.keel.kube import AlreadyExists, DeleteOptions, KubeApi, Selector
from neorion.keel.kube.control import InformerFactory, Priority
from neorion.keel.kube.core import POD, Pod


class PodEngine:
    """Pods of one worker, known by its label. One watch shows them all."""

    def __init__(self, settings: PodSettings, api: KubeApi, clock: Clock, rng: Rng) -> None:
        self._settings = settings
        self._api = api
        self._informers = InformerFactory(api, clock, rng)
        select = Selector(labels=f"{WORKER_LABEL}={settings.worker}")
        self._pods = self._informers.of(POD, settings.namespace, select)

    @property
    def boot(self) -> str:
        """A Pod outlives its worker's container, and is deleted with its worker's Pod."""
        return f"pods-of-{self._settings.worker}"

    def leader_host(self, leader: AttemptId) -> str:
        return f"{pod_name(leader)}.{GANG_SERVICE}"

    async def create(self, spec: ContainerSpec) -> None:
        try:
            made = await self._api.create(POD, pod_manifest(spec, self._settings))
        except AlreadyExists:
            # Names come from attempts and are never used again.
            return
        except QuotaExceeded as error:
            raise Retry("runtime.pod_quota", error.sentence, hint=error.hint) from error
        self._pods.observe(made)

    async def remove(self, attempt: AttemptId, grace: Duration) -> None:
        # 0 would remove the object while its processes may still run.
        seconds = max(1, round(grace.seconds))
        try:
            await self._api.delete(
                POD,
                pod_name(attempt),
                self._settings.namespace,
                DeleteOptions(grace=Duration.of(seconds=seconds)),
            )
        except NotFound:
            return

    async def changes(self) -> AsyncGenerator[Sequence[ContainerStatus], None]:
        changed = dict[AttemptId, ContainerStatus]()
        wake = anyio.Event()

        def take(before: Pod | None, after: Pod | None, _: Priority) -> None:
            if after is not None:
                changed[attempt_of(after)] = container_status(after)
            elif before is not None:
                # What its last state said of the reasons stays true.
                changed[attempt_of(before)] = replace(container_status(before), state=ContainerState.GONE)
            wake.set()

        async with anyio.create_task_group() as group:
            group.start_soon(self._informers.run)
            await self._informers.wait_synced()
            self._pods.listen(take)
            yield [container_status(pod) for pod in self._pods]
            while True:
                await wake.wait()
                wake = anyio.Event()
                batch, changed = list(changed.values()), {}
                yield batch
