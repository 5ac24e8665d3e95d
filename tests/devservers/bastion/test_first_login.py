"""Users who log in for the first time, with the stock client, and the user controller that makes them."""

import subprocess
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import pytest

from neorion.devservers.adapters.identity import EvidenceVerifier, OpenIdClient, UserAuthorities
from neorion.devservers.app.user_controller import UserPlan, UserPorts, build_user_controller
from neorion.devservers.decide.tenant import SERVERS_COUNTED
from neorion.devservers.model.audit import AuditEvent
from neorion.devservers.model.kube_types import LOGIN_POLICIES, USER_REQUESTS, USERS
from neorion.devservers.model.tenancy import SYSTEM_NAMESPACE
from neorion.keel.base import Duration, NotFound
from neorion.keel.clock import SystemClock, system_rng
from neorion.keel.kube import MergePatch
from neorion.keel.kube.core import RESOURCE_QUOTA
from neorion.keel.kube.testing import MemoryApi
from tests.devservers.bastion.loopback import Loopback, loopback, make_key

pytestmark = [pytest.mark.anyio, pytest.mark.needs("ssh")]

POLICY = {"metadata": {"name": "default"}, "spec": {"firstLogin": {"certificates": True}}}


@pytest.fixture
async def bastion(tmp_path: Path) -> AsyncGenerator[Loopback]:
    """eve is no user. ca is the company's authority, and other is not."""
    async with loopback(tmp_path) as made:
        for name in ("ca", "other", "eve"):
            await make_key(tmp_path, name)
        await made.api.create(LOGIN_POLICIES, POLICY)
        yield made


def sign(bastion: Loopback, *principals: str, life: str = "+1h", authority: str = "ca") -> None:
    names = ["-n", ",".join(principals)] if principals else []
    command = ["ssh-keygen", "-q", "-s", str(bastion.key(authority)), "-I", "eve", "-V", life, *names]
    subprocess.run([*command, f"{bastion.key('eve')}.pub"], check=True)


async def login(bastion: Loopback, *words: str) -> "subprocess.CompletedProcess[bytes]":
    certificate = f"CertificateFile={bastion.key('eve')}-cert.pub"
    command = bastion.command("eve", *words, key="eve")
    return await bastion.run([*command[:1], "-o", certificate, *command[1:]])


@asynccontextmanager
async def provisioning(bastion: Loopback, authorities: Path) -> AsyncGenerator[None]:
    """The user controller, and what a cluster does about quotas."""
    api, clock = bastion.api, SystemClock()
    checker = EvidenceVerifier(UserAuthorities(authorities), OpenIdClient(clock))
    plan = UserPlan("test", SYSTEM_NAMESPACE)
    controller = build_user_controller(api, plan, clock, system_rng(), UserPorts(checker=checker))
    stopping = anyio.Event()
    async with anyio.create_task_group() as group:
        group.start_soon(controller.run, stopping)
        group.start_soon(_count_quotas, api)
        yield
        stopping.set()
        group.cancel_scope.cancel()


async def _count_quotas(api: MemoryApi) -> None:
    counted = MergePatch({"status": {"used": {SERVERS_COUNTED: "0"}}})
    while True:
        for quota in (await api.list(RESOURCE_QUOTA)).items:
            if not quota.status.used:
                await api.patch(RESOURCE_QUOTA, quota.meta.name, counted, quota.meta.namespace, "status")
        await SystemClock().sleep(Duration.of(ms=50))


async def test_a_first_login_makes_the_user_and_lands_in_the_console(bastion: Loopback):
    sign(bastion, "eve")
    async with provisioning(bastion, bastion.key("ca.pub")):
        done = await login(bastion, "echo at work; exit 3")
        assert (done.returncode, done.stdout) == (3, b"at work\n"), done.stderr
        assert done.stderr.decode().splitlines() == [
            "This is your first login. Creating the user eve.",
            "The namespace dev-eve is ready.",
            "The quota is counted.",
            "You can work now.",
            "Starting your console.",
        ]
        eve = await bastion.api.get(USERS, "eve")
        assert eve.spec.keys == ()
        assert (await login(bastion, "true")).stderr == b""
    events = [one.event for one in bastion.records if one.user == "eve"]
    assert events[:3] == [AuditEvent.LOGIN, AuditEvent.SESSION, AuditEvent.PROVISION]
    assert events.count(AuditEvent.PROVISION) == 1


async def test_sessions_of_one_first_login_share_one_request(bastion: Loopback):
    sign(bastion, "eve")
    certificate = f"CertificateFile={bastion.key('eve')}-cert.pub"
    options = ["-o", certificate, "-o", f"ControlPath={bastion.folder}/control"]
    command = bastion.command("eve", "-N", key="eve")
    async with (
        provisioning(bastion, bastion.key("ca.pub")),
        await anyio.open_process([command[0], *options, "-M", *command[1:]]) as master,
    ):
        with anyio.fail_after(20):
            while not (bastion.folder / "control").exists():
                await SystemClock().sleep(Duration.of(ms=20))
        codes: list[int] = []

        async def one(number: int) -> None:
            word = bastion.command("eve", f"exit {number}", key="eve")
            codes.append((await bastion.run([word[0], *options, *word[1:]])).returncode)

        async with anyio.create_task_group() as group:
            for number in range(1, 6):
                group.start_soon(one, number)
        assert sorted(codes) == [1, 2, 3, 4, 5]
        requests = (await bastion.api.list(USER_REQUESTS, SYSTEM_NAMESPACE)).items
        assert len(requests) == 1
        master.terminate()


@pytest.mark.parametrize(
    ("principals", "life", "authority"),
    [
        (("bob",), "+1h", "ca"),
        ((), "+1h", "ca"),
        (("eve",), "-2h:-1h", "ca"),
        (("eve",), "+1h", "other"),
    ],
)
async def test_a_certificate_that_does_not_hold_makes_no_user(
    bastion: Loopback, principals: tuple[str, ...], life: str, authority: str
):
    sign(bastion, *principals, life=life, authority=authority)
    async with provisioning(bastion, bastion.key("ca.pub")):
        assert (await login(bastion, "true")).returncode == 255
    assert (await bastion.api.list(USER_REQUESTS, SYSTEM_NAMESPACE)).items == []
    with pytest.raises(NotFound):
        await bastion.api.get(USERS, "eve")


async def test_without_a_policy_nobody_is_made(bastion: Loopback):
    await bastion.api.delete(LOGIN_POLICIES, "default")
    sign(bastion, "eve")
    assert (await login(bastion, "true")).returncode == 255
    assert [one.event for one in bastion.records] == [AuditEvent.REFUSED]


async def test_what_the_user_controller_does_not_believe_makes_no_user(bastion: Loopback):
    """A stolen bastion may ask for anybody. The user controller trusts its own authorities alone."""
    sign(bastion, "eve")
    async with provisioning(bastion, bastion.key("other.pub")):
        done = await login(bastion, "true")
    assert done.returncode == 255
    assert b"The certificate is not signed by an authority of this cluster." in done.stderr
    assert b"Ask an administrator to add you." in done.stderr
    with pytest.raises(NotFound):
        await bastion.api.get(USERS, "eve")
    assert [one.event for one in bastion.records][-3:] == [
        AuditEvent.REFUSED,
        AuditEvent.SESSION_END,
        AuditEvent.LOGOUT,
    ]


async def test_a_user_that_is_still_pending_is_waited_for(bastion: Loopback):
    pending = MergePatch({"status": {"phase": "Pending"}})
    await bastion.api.patch(USERS, "ann", pending, subresource="status")
    async with await anyio.open_process(bastion.command("ann", "echo begun")) as client:
        assert client.stdout is not None
        while not [one for one in bastion.records if one.event is AuditEvent.SESSION]:
            await SystemClock().sleep(Duration.of(ms=20))
        ready = MergePatch({"status": {"phase": "Provisioned"}})
        await bastion.api.patch(USERS, "ann", ready, subresource="status")
        with anyio.fail_after(20):
            assert await client.stdout.receive() == b"begun\n"
