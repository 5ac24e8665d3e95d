"""Keeps as many warm Pods of each flavor as the flavor asks for."""

from collections.abc import Iterable

from neorion.devservers.decide import OperatorSettings
from neorion.devservers.decide.warm_pods import WARM_LABEL, warm_deployments, warm_label
from neorion.devservers.model.kube_types import DEPLOYMENTS, DEVSERVERFLAVORS, ServerDeployment
from neorion.devservers.model.tenancy import WARM_NAMESPACE
from neorion.keel.base import Duration
from neorion.keel.kube import ObjectKey, Selector
from neorion.keel.kube.control import Applier, Controller, InformerFactory, generation_changed, self_key


class WarmPodController:
    """The reconcile of warm Pods, flavor by flavor. Those of a deleted flavor go with it."""

    def __init__(self, informers: InformerFactory, applier: Applier, settings: OperatorSettings) -> None:
        self._flavors = informers.of(DEVSERVERFLAVORS)
        self._deployments = informers.of(
            DEPLOYMENTS, WARM_NAMESPACE, Selector(labels=WARM_LABEL), packed=True
        )
        self._of_flavor = self._deployments.index(_flavor_label)
        self._applier = applier
        self._settings = settings

    def watched_by(self, controller: Controller[ObjectKey]) -> None:
        controller.watch(self._flavors, self_key, generation_changed)
        controller.watch(self._deployments, _flavor, generation_changed, begins=False)

    async def reconcile(self, key: ObjectKey) -> Duration | None:
        flavor = self._flavors.get(key)
        if flavor is None:
            return None
        wanted = warm_deployments(flavor, self._settings)
        for manifest in wanted:
            name = ObjectKey(WARM_NAMESPACE, manifest["metadata"]["name"])
            await self._applier.apply(DEPLOYMENTS, manifest, self._deployments.get(name))
        kept = {manifest["metadata"]["name"] for manifest in wanted}
        for standing in self._of_flavor.get(warm_label(key.name)):
            if standing.meta.name not in kept:
                await self._applier.delete(DEPLOYMENTS, standing)
        return None


def _flavor(deployment: ServerDeployment) -> Iterable[ObjectKey]:
    """The flavor that owns it."""
    return (ObjectKey("", owner.name) for owner in deployment.meta.owners)


def _flavor_label(deployment: ServerDeployment) -> Iterable[str]:
    return (deployment.meta.labels[WARM_LABEL],)
