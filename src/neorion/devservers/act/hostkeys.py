"""Gives a server its host key: once, before anything is made for it."""

from contextlib import suppress

from neorion.devservers.decide import Identity, host_key_secret
from neorion.devservers.ports import Keys
from neorion.keel.base import NotFound
from neorion.keel.kube import Api, Exists
from neorion.keel.kube.control import Fence
from neorion.keel.kube.core import SECRET


async def give_host_key(api: Api, fence: Fence, keys: Keys, server: Identity) -> str:
    """Returns its public half.

    Whoever asks has no record of a key, so a Secret that is there was left by somebody who died before writing it down,
    or belongs to an older server of the same name. It is replaced and never read: the operator may not read Secrets.
    """
    made = keys.host_key()
    manifest = host_key_secret(server, made.private)
    fence.check()
    try:
        await api.create(SECRET, manifest)
    except Exists:
        fence.check()
        with suppress(NotFound):
            await api.delete(SECRET, manifest["metadata"]["name"], server.namespace)
        await api.create(SECRET, manifest)
    return made.public
