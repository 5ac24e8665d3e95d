"""Makes a folder for every claim of our class, and removes it when the claim is gone."""

import shutil
from contextlib import suppress
from pathlib import Path

from anyio import to_thread

from neorion.drydock.storage.volumes import VOLUME, is_left, name_of, volume_for, wants_volume
from neorion.keel.base import Duration, NotFound
from neorion.keel.clock import Clock, Rng
from neorion.keel.kube import AlreadyExists, KubeApi, ObjectKey
from neorion.keel.kube.control import Controller, InformerFactory, Operator, self_key
from neorion.keel.kube.core import CLAIM
from neorion.keel.telemetry import logger

log = logger(__name__)


class Provisioner:
    """Two wheels, one for claims and one for volumes. Each step may be repeated after a crash."""

    def __init__(self, api: KubeApi, folder: Path, clock: Clock, rng: Rng) -> None:
        self._api = api
        self._folder = folder
        informers = InformerFactory(api, clock, rng)
        self._claims = informers.of(CLAIM)
        self._volumes = informers.of(VOLUME)
        serving = Controller("claims", self._serve, clock, rng)
        serving.watch(self._claims, self_key)
        clearing = Controller("volumes", self._clear, clock, rng)
        clearing.watch(self._volumes, self_key)
        self.operator = Operator(informers, [serving, clearing])

    async def _serve(self, key: ObjectKey) -> Duration | None:
        claim = self._claims.get(key)
        if claim is None or not wants_volume(claim):
            return None
        name = name_of(claim)
        if self._volumes.get(ObjectKey("", name)) is not None:
            return None
        path = self._folder / name
        path.mkdir(parents=True, exist_ok=True)
        # Pods may run as any user, and the kubelet does not change the owner of a volume of this kind.
        path.chmod(0o777)
        with suppress(AlreadyExists):
            await self._api.create(VOLUME.raw, volume_for(claim, str(path)))
            log.info("volume made", claim=str(key), volume=path.name)
        return None

    async def _clear(self, key: ObjectKey) -> Duration | None:
        volume = self._volumes.get(key)
        if volume is None or not is_left(volume):
            return None
        # The files first: while the volume is known, a crash between the two is made good.
        await to_thread.run_sync(lambda: shutil.rmtree(self._folder / key.name, ignore_errors=True))
        with suppress(NotFound):
            await self._api.delete(VOLUME, key.name)
        log.info("volume removed", volume=key.name)
        return None
