import pytest

from neorion.devservers.act.hostkeys import give_host_key
from neorion.devservers.adapters.hostkeys import Keymaker
from neorion.devservers.decide import Identity
from neorion.keel.clock import SystemClock
from neorion.keel.kube.control import UNFENCED
from neorion.keel.kube.core import SECRET
from neorion.keel.kube.testing import MemoryApi, MemoryCluster

pytestmark = pytest.mark.anyio

SERVER = Identity("mydev", "dev-ann", "1")


def api() -> MemoryApi:
    clock = SystemClock()
    return MemoryApi(MemoryCluster(clock), clock, "operator")


async def test_a_server_gets_a_key_of_its_own():
    there = api()
    public = await give_host_key(there, UNFENCED, Keymaker(), SERVER)
    assert public.startswith("ssh-ed25519 ")
    secret = await there.get(SECRET, "mydev-ssh-host", "dev-ann")
    assert [owner.uid for owner in secret.meta.owners] == ["1"]


async def test_a_key_that_nobody_wrote_down_is_replaced_and_never_read():
    there = api()
    await give_host_key(there, UNFENCED, Keymaker(), SERVER)
    before = await there.get(SECRET, "mydev-ssh-host", "dev-ann")
    await give_host_key(there, UNFENCED, Keymaker(), SERVER)
    after = await there.get(SECRET, "mydev-ssh-host", "dev-ann")
    assert before.meta.uid != after.meta.uid


def test_the_private_half_shows_itself_nowhere():
    key = Keymaker().host_key()
    assert key.private.startswith("-----BEGIN OPENSSH PRIVATE KEY-----")
    assert "PRIVATE" not in repr(key)
