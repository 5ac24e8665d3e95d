"""The flavors a cluster starts with: made once, and never again, whatever becomes of them."""

from neorion.devservers.model import DEFAULT_FLAVORS
from neorion.devservers.model.kube_types import DEVSERVERFLAVORS, DevServerFlavor
from neorion.keel.kube import AlreadyExists, KubeApi, ObjectMeta
from neorion.keel.kube.control import Fence
from neorion.keel.kube.core import CONFIG_MAP, ConfigMap
from neorion.keel.telemetry import logger

log = logger(__name__)

MARKER = "devservers-default-flavors"


class DefaultFlavors:
    """Remembers in a ConfigMap which flavors were made, so that one an operator deleted does not come back."""

    def __init__(self, api: KubeApi, namespace: str, fence: Fence) -> None:
        self._api = api
        self._namespace = namespace
        self._fence = fence

    async def found(self) -> None:
        made = await self._made()
        missing = [name for name in DEFAULT_FLAVORS if name not in made]
        for name in missing:
            self._fence.check()
            try:
                await self._api.create(
                    DEVSERVERFLAVORS, DevServerFlavor(meta=ObjectMeta(name=name), spec=DEFAULT_FLAVORS[name])
                )
                log.info("flavor made", flavor=name)
            except AlreadyExists:
                log.info("flavor was there", flavor=name)
        if missing:
            self._fence.check()
            marker = ConfigMap(
                meta=ObjectMeta(name=MARKER, namespace=self._namespace),
                data=dict.fromkeys(DEFAULT_FLAVORS, "made"),
            )
            await self._api.apply(CONFIG_MAP, marker, "devservers", force=True)

    async def _made(self) -> frozenset[str]:
        found = await self._api.list(CONFIG_MAP, self._namespace)
        return frozenset(name for one in found.items if one.meta.name == MARKER for name in one.data)
