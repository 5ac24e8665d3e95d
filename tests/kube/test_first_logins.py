"""First logins on a real API server, with the rights of the bastion and of the user controller."""

from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import anyio
import pytest

from neorion.devservers.adapters.identity import EvidenceVerifier, OpenIdClient, UserAuthorities
from neorion.devservers.adapters.users import TenantManager
from neorion.devservers.model.kube_types import LOGIN_POLICIES, USER_REQUESTS, USERS
from neorion.devservers.model.login import RequestPhase
from neorion.drydock.cluster import Cluster
from neorion.keel.base import Denied
from neorion.keel.clock import SystemClock
from neorion.keel.kube import InvalidObject, Kind, MergePatch
from neorion.keel.kube.client import Client
from tests.devservers.bastion.loopback import make_key
from tests.kube import guard_rows as rows
from tests.kube.guard_patience import allowed, refused
from tests.kube.user_controller import PATIENCE, administered, provisioning, until

pytestmark = pytest.mark.anyio

SYSTEM = "devservers-system"
KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIP5MopRu2fcl eve@laptop"


@pytest.fixture
async def admin(own_cluster: Cluster) -> AsyncGenerator[Client]:
    async with administered(own_cluster) as client:
        yield client


@pytest.fixture
def controller(admin: Client) -> Client:
    """The API with the rights of the user controller."""
    return admin.acting_as(*rows.account(SYSTEM, "devservers-user-controller"))


POLICY = {"metadata": {"name": "default"}, "spec": {"firstLogin": {"certificates": True, "groups": ["new"]}}}


async def certificate(folder: Path, authority: str) -> str:
    """A certificate for eve."""
    command = ["ssh-keygen", "-q", "-s", str(folder / authority), "-I", "eve", "-V", "+1h", "-n", "eve"]
    await anyio.run_process([*command, str(folder / "eve.pub")])
    return (folder / "eve-cert.pub").read_text().strip()


@pytest.mark.needs("ssh")
async def test_a_bastion_asks_for_users_and_the_user_controller_makes_those_with_evidence(
    admin: Client, controller: Client, tmp_path: Path
):
    for name in ("ca", "other", "eve"):
        await make_key(tmp_path, name)
    bastion = admin.acting_as(*rows.account(SYSTEM, "devservers-bastion"))
    checker = EvidenceVerifier(UserAuthorities(tmp_path / "ca.pub"), OpenIdClient(SystemClock()))

    async def answer(name: str, spec: dict[str, Any]) -> tuple[RequestPhase, str]:
        meta = {"name": name, "namespace": SYSTEM}
        await bastion.create(USER_REQUESTS.raw, {"metadata": meta, "spec": spec})

        async def is_answered() -> bool:
            return (await bastion.get(USER_REQUESTS, name, SYSTEM)).status.phase is not None

        await until(is_answered)
        status = (await bastion.get(USER_REQUESTS, name, SYSTEM)).status
        return status.phase or RequestPhase.DENIED, status.reason or ""

    good = await certificate(tmp_path, "ca")
    async with provisioning(controller, SYSTEM, checker=checker):
        assert await answer("before", {"user": "eve", "certificate": good}) == ("Denied", "NotAllowed")
        await admin.create(LOGIN_POLICIES.raw, POLICY)
        try:
            forged = await certificate(tmp_path, "other")
            for name, spec in (
                ("forged", {"user": "eve", "certificate": forged}),
                ("another", {"user": "mallory", "certificate": good}),
                ("nonsense", {"user": "eve", "certificate": "ssh-ed25519 AAAA"}),
            ):
                assert await answer(name, spec) == ("Denied", "NotProven"), name
            assert await answer("token", {"user": "eve", "idToken": "a.b.c"}) == ("Denied", "NotAllowed")
            assert [one.meta.name for one in (await admin.list(USERS)).items] == []
            assert await answer("good", {"user": "eve", "certificate": good}) == ("Approved", "Approved")
            await TenantManager(admin).wait_provisioned("eve", PATIENCE)
            eve = await admin.get(USERS, "eve")
            assert (eve.spec.keys, eve.spec.groups) == ((), ("new",))
            for denied in (
                lambda: bastion.patch(
                    USER_REQUESTS, "good", MergePatch({"status": {"phase": "Denied"}}), SYSTEM, "status"
                ),
                lambda: bastion.patch(USER_REQUESTS, "good", MergePatch({"spec": {"user": "root"}}), SYSTEM),
                lambda: bastion.list(USER_REQUESTS, SYSTEM),
                lambda: bastion.create(
                    USER_REQUESTS.raw,
                    {"metadata": {"name": "x", "namespace": "dev-eve"}, "spec": {"user": "x"}},
                ),
                lambda: bastion.patch(LOGIN_POLICIES, "default", MergePatch({"spec": {}})),
            ):
                with pytest.raises(Denied):
                    await denied()
        finally:
            await admin.delete(LOGIN_POLICIES, "default")
            for one in (await admin.list(USER_REQUESTS, SYSTEM)).items:
                await admin.delete(USER_REQUESTS, one.meta.name, SYSTEM)


async def test_a_stolen_account_of_the_user_controller_makes_no_user_with_keys(
    admin: Client, controller: Client
):
    for spec in ({"keys": [KEY]}, {"github": "eve"}):
        eve = {"metadata": {"name": "eve"}, "spec": spec}
        await refused(lambda eve=eve: controller.rehearsing().create(USERS.raw, eve), "have no keys")
        await allowed(lambda eve=eve: admin.rehearsing().create(USERS.raw, eve))
    await allowed(
        lambda: controller.rehearsing().create(USERS.raw, {"metadata": {"name": "eve"}, "spec": {}})
    )


@pytest.mark.parametrize(
    ("kind", "name", "spec", "words"),
    [
        (LOGIN_POLICIES, "other", {}, "its name is default"),
        (LOGIN_POLICIES, "default", {"firstLogin": {"identityProvider": True}}, "needs an identityProvider"),
        (LOGIN_POLICIES, "default", {"firstLogin": {"certificates": "yes"}}, "boolean"),
        (LOGIN_POLICIES, "default", {"firstLogin": {"groups": ["Wheel!"]}}, "should match"),
        (
            LOGIN_POLICIES,
            "default",
            {"firstLogin": {"quota": {"cpu": "-1"}}},
            "write an amount as Kubernetes does",
        ),
        (
            LOGIN_POLICIES,
            "default",
            {"firstLogin": {"limits": {"channels": 0}}},
            "greater than or equal to 1",
        ),
        (LOGIN_POLICIES, "default", {"identityProvider": {"clientId": "x"}}, "issuer: Required"),
        (LOGIN_POLICIES, "default", {"identityProvider": {"issuer": "https://x"}}, "clientId: Required"),
        *(
            (
                LOGIN_POLICIES,
                "default",
                {"identityProvider": {"issuer": issuer, "clientId": "x"}},
                "write the https address of the issuer",
            )
            for issuer in (
                "http://login.example.com",
                "https://",
                "login.example.com",
                "https://a@b.example.com",
                "https://login.example.com?x=1",
                "https://login.example.com#x",
                "file:///etc/passwd",
            )
        ),
        (
            LOGIN_POLICIES,
            "default",
            {"identityProvider": {"issuer": "https://x.io", "clientId": "x", "usernameClaim": ""}},
            "at least 1 chars",
        ),
        (
            LOGIN_POLICIES,
            "default",
            {"identityProvider": {"issuer": "https://x.io", "clientId": "x", "scopes": ["open id"]}},
            "should match",
        ),
        (USER_REQUESTS, "r", {"user": "Eve", "certificate": "x"}, "should match"),
        (USER_REQUESTS, "r", {"user": "", "certificate": "x"}, "at least 1 chars"),
        (USER_REQUESTS, "r", {"user": "a" * 60, "certificate": "x"}, "Too long"),
        (USER_REQUESTS, "r", {"user": "eve"}, "give a certificate or a token"),
        (USER_REQUESTS, "r", {"user": "eve", "certificate": "x", "idToken": "y"}, "and not both"),
        (USER_REQUESTS, "r", {"user": "eve", "certificate": "x" * 16_385}, "Too long"),
        (USER_REQUESTS, "r", {"certificate": "x"}, "user: Required"),
    ],
)
async def test_a_policy_or_a_request_that_cannot_be_is_refused_by_the_server(
    admin: Client, kind: Kind[Any], name: str, spec: dict[str, Any], words: str
):
    meta = {"name": name, **({"namespace": SYSTEM} if kind.namespaced else {})}
    with pytest.raises(InvalidObject, match=words):
        await admin.create(kind.raw, {"metadata": meta, "spec": spec})
