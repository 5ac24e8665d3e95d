"""Creates a server's host key before its other objects, and again if the key was deleted."""

from contextlib import suppress
from typing import Final

from neorion.devservers.decide import OwnerIdentity, host_key_name, host_key_secret
from neorion.devservers.ports import HostKeyFactory
from neorion.keel.base import Conflict, Denied, NotFound
from neorion.keel.kube import AlreadyExists, DeleteOptions, KubeApi
from neorion.keel.kube.control import Fence
from neorion.keel.kube.core import SECRET

# No object has it.
_NOBODY: Final = DeleteOptions(uid="00000000-0000-0000-0000-000000000000")


async def host_key_is_gone(api: KubeApi, fence: Fence, server: OwnerIdentity) -> bool:
    """The operator may not read Secrets, so it asks for the end of one that cannot be: what is there conflicts with that."""
    fence.check()
    try:
        await api.delete(SECRET, host_key_name(server.name), server.namespace, _NOBODY)
    except NotFound:
        return True
    except (Conflict, Denied):
        return False
    return False


async def give_host_key(api: KubeApi, fence: Fence, keys: HostKeyFactory, server: OwnerIdentity) -> str:
    """Creates the host key and returns its public half.

    The server's status has no key yet. So an existing Secret was left by a crash before the status was written, or belongs to
    an older server of the same name. It is replaced and never read: the operator may not read Secrets.
    """
    made = keys.host_key()
    manifest = host_key_secret(server, made.private)
    fence.check()
    try:
        await api.create(SECRET, manifest)
    except AlreadyExists:
        fence.check()
        with suppress(NotFound):
            await api.delete(SECRET, manifest["metadata"]["name"], server.namespace)
        await api.create(SECRET, manifest)
    return made.public
