"""Gives the bastion its host key and its authority, once for the cluster."""

from typing import Final

from neorion.devservers.controllers.users import AUTHORITY, BASTION_KEYS, MANAGER
from neorion.devservers.ports import HostKeyFactory
from neorion.keel.base import NotFound
from neorion.keel.kube import AlreadyExists, KubeApi, ObjectMeta
from neorion.keel.kube.control import Fence
from neorion.keel.kube.core import CONFIG_MAP, SECRET, ConfigMap, Secret
from neorion.keel.telemetry import logger

log = logger(__name__)

# The names in the Secret. A public half has ".pub" behind, and stands in the ConfigMap too.
HOST_KEY: Final = "host_key"
AUTHORITY_KEY: Final = "authority"
_PUBLIC: Final = (f"{HOST_KEY}.pub", AUTHORITY)


async def ensure_bastion_keys(api: KubeApi, keys: HostKeyFactory, fence: Fence, namespace: str) -> None:
    """Creates the bastion's keys if there are none. Existing keys stay, because clients and servers know them."""
    secret = await _secret(api, keys, fence, namespace)
    public = {name: (secret.value(name) or b"").decode() for name in _PUBLIC}
    fence.check()
    shown = ConfigMap(meta=ObjectMeta(name=BASTION_KEYS, namespace=namespace), data=public)
    await api.apply(CONFIG_MAP, shown, MANAGER, force=True)


async def _secret(api: KubeApi, keys: HostKeyFactory, fence: Fence, namespace: str) -> Secret:
    try:
        return await api.get(SECRET, BASTION_KEYS, namespace)
    except NotFound:
        pass
    host, authority = keys.host_key(), keys.host_key()
    data = {
        HOST_KEY: host.private,
        _PUBLIC[0]: f"{host.public}\n",
        AUTHORITY_KEY: authority.private,
        _PUBLIC[1]: f"{authority.public}\n",
    }
    fence.check()
    made = Secret(meta=ObjectMeta(name=BASTION_KEYS, namespace=namespace), string_data=data)
    try:
        await api.create(SECRET, made)
        log.info("bastion keys made", secret=BASTION_KEYS)
    except AlreadyExists:
        pass
    return await api.get(SECRET, BASTION_KEYS, namespace)
