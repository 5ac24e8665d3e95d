"""Logins that are confirmed at an identity provider, with the stock client on loopback."""

import subprocess
from collections.abc import AsyncGenerator
from pathlib import Path

import anyio
import asyncssh
import pytest

from neorion.devservers.bastion import Limits
from neorion.devservers.model.audit import AuditEvent
from neorion.devservers.model.kube_types import LOGIN_POLICIES, USER_REQUESTS, USERS
from neorion.devservers.model.tenancy import SYSTEM_NAMESPACE
from neorion.keel.base import Duration, NotFound
from neorion.keel.clock import SystemClock
from neorion.keel.kube import MergePatch
from tests.devservers.bastion.loopback import Loopback, loopback
from tests.devservers.bastion.test_first_login import provisioning
from tests.devservers.identity_provider import CLIENT, LocalProvider, local_provider

pytestmark = [pytest.mark.anyio, pytest.mark.needs("ssh")]


@pytest.fixture
async def provider() -> AsyncGenerator[LocalProvider]:
    async with local_provider() as made:
        yield made


@pytest.fixture
async def bastion(tmp_path: Path, provider: LocalProvider) -> AsyncGenerator[Loopback]:
    # A login at the provider takes longer than one without.
    async with loopback(tmp_path, Limits(grace_s=2)) as made:
        await allow(made, provider)
        yield made


async def allow(bastion: Loopback, provider: LocalProvider, **first: bool) -> None:
    known = {"issuer": provider.issuer, "clientId": CLIENT}
    spec = {"identityProvider": known, "firstLogin": first}
    await bastion.api.create(LOGIN_POLICIES, {"metadata": {"name": "default"}, "spec": spec})


async def login(bastion: Loopback, user: str, *words: str) -> "subprocess.CompletedProcess[bytes]":
    command = [*bastion.command(user, *words)]
    options = ["-o", "PreferredAuthentications=keyboard-interactive", "-o", "LogLevel=INFO"]
    return await bastion.run([command[0], *options, *command[1:]])


async def test_a_user_confirms_the_login_and_lands_in_the_console_and_in_servers(
    bastion: Loopback, provider: LocalProvider
):
    provider.claims["preferred_username"] = "ann"
    # Longer than a login by key may take.
    provider.answers = ["authorization_pending"] * 60
    done = await login(bastion, "ann", "echo in; exit 3")
    assert (done.returncode, done.stdout) == (3, b"in\n"), done.stderr
    assert f"Open {provider.issuer}/activate and confirm the code ABCD-EFGH".encode() in done.stderr
    assert (await login(bastion, "ann+mydev", "echo in")).stdout == b"in\n"
    logins = [one for one in bastion.records if one.event is AuditEvent.LOGIN]
    assert [(one.user, one.key) for one in logins] == [("ann", "identity provider")] * 2
    # Keys go on as before, and no code is asked for.
    assert (await bastion.ssh("ann", "true")).returncode == 0


@pytest.mark.parametrize(
    ("user", "claims", "answers", "words"),
    [
        ("ann", {"preferred_username": "bob"}, [], "confirmed the login as bob, and not as ann"),
        ("ann", {"preferred_username": "ann", "aud": "other"}, [], "Audience doesn't match"),
        ("ann", {"preferred_username": "ann", "iss": "https://x.io"}, [], "Invalid issuer"),
        ("ann", {"preferred_username": "ann", "exp": 1}, [], "expired"),
        ("ann", {"preferred_username": "ann"}, ["access_denied"], "was denied at the identity provider"),
        ("ann", {"preferred_username": "ann"}, ["expired_token"], "was not confirmed in time"),
    ],
)
async def test_a_login_that_is_not_confirmed_is_refused_with_its_reason(
    bastion: Loopback,
    provider: LocalProvider,
    user: str,
    claims: dict[str, object],
    answers: list[str],
    words: str,
):
    provider.claims, provider.answers = claims, answers
    done = await login(bastion, user, "true")
    assert done.returncode == 255
    assert words in done.stderr.decode()
    (record,) = bastion.records
    assert record.event is AuditEvent.REFUSED
    assert words in record.reason


@pytest.mark.parametrize("user", ["ann", "eve"])
async def test_a_user_who_is_suspended_or_not_there_is_refused_after_the_confirmation(
    bastion: Loopback, provider: LocalProvider, user: str
):
    provider.claims["preferred_username"] = user
    await bastion.api.patch(USERS, "ann", MergePatch({"spec": {"suspended": True}}))
    done = await login(bastion, user, "true")
    assert done.returncode == 255
    assert f"{user} may not log in here.".encode() in done.stderr
    assert len(provider.polls) == 1
    assert [one.event for one in bastion.records] == [AuditEvent.REFUSED]


async def test_a_first_login_at_the_provider_makes_the_user(tmp_path: Path, provider: LocalProvider):
    async with loopback(tmp_path) as bastion:
        await allow(bastion, provider, identityProvider=True)
        async with provisioning(bastion, tmp_path / "none.pub"):
            done = await login(bastion, "eve", "echo at work")
            assert done.stdout == b"at work\n", done.stderr
            assert b"This is your first login. Creating the user eve." in done.stderr
            assert (await bastion.api.get(USERS, "eve")).spec.keys == ()


async def test_a_token_that_the_user_controller_does_not_believe_makes_no_user(
    tmp_path: Path, provider: LocalProvider
):
    """As a stolen bastion would ask: with a token for another client, and with one for another user."""
    async with loopback(tmp_path) as bastion:
        await allow(bastion, provider, identityProvider=True)
        async with provisioning(bastion, tmp_path / "none.pub"):
            tokens = (provider.token(aud="other"), provider.token(preferred_username="ann"), "a.b.c")
            for number, token in enumerate(tokens):
                request = {"user": "eve", "certificate": "", "idToken": token}
                meta = {"name": f"request-{number}", "namespace": SYSTEM_NAMESPACE}
                await bastion.api.create(USER_REQUESTS, {"metadata": meta, "spec": request})
                with anyio.fail_after(20):
                    while True:
                        found = await bastion.api.get(USER_REQUESTS, meta["name"], SYSTEM_NAMESPACE)
                        if found.status.phase is not None:
                            break
                        await SystemClock().sleep(Duration.of(ms=20))
                assert (found.status.phase, found.status.reason) == ("Denied", "NotProven")
        with pytest.raises(NotFound):
            await bastion.api.get(USERS, "eve")


async def test_a_client_that_gives_up_is_polled_for_no_longer(bastion: Loopback, provider: LocalProvider):
    provider.answers = ["authorization_pending"] * 10_000
    command = bastion.command("ann", "true")
    options = ["-o", "PreferredAuthentications=keyboard-interactive"]
    async with await anyio.open_process([command[0], *options, *command[1:]]) as client:
        with anyio.fail_after(20):
            while len(provider.polls) < 3:
                await SystemClock().sleep(Duration.of(ms=20))
        assert len(bastion.context.device_logins) == 1
        client.kill()
    with anyio.fail_after(20):
        while bastion.context.device_logins:
            await SystemClock().sleep(Duration.of(ms=20))
    before = len(provider.polls)
    await SystemClock().sleep(Duration.of(ms=300))
    assert len(provider.polls) <= before + 1


async def test_logins_that_wait_for_a_confirmation_are_bounded(tmp_path: Path, provider: LocalProvider):
    async with loopback(tmp_path, Limits(device_logins=0)) as bastion:
        await allow(bastion, provider)
        done = await login(bastion, "ann", "true")
        assert done.returncode == 255
        assert b"Too many logins wait for their confirmation." in done.stderr
        assert provider.polls == []


async def test_the_provider_is_asked_for_names_of_users_alone(bastion: Loopback):
    for user, methods in (
        ("ann", ["keyboard-interactive", "publickey"]),
        ("nobody", ["keyboard-interactive", "publickey"]),
        ("ANN", ["publickey"]),
    ):
        offered = await asyncssh.get_server_auth_methods(
            "127.0.0.1", bastion.port, username=user, config=None
        )
        assert sorted(offered) == methods
