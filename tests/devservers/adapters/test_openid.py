"""Device logins and tokens, at an OpenID Connect provider on this machine."""

from typing import Any

import pytest
from msgspec import structs

from neorion.devservers.adapters.identity import OpenIdClient
from neorion.keel.base import Deadline, Denied, Duration, Retry
from neorion.keel.clock import SystemClock
from tests.devservers.identity_provider import CLIENT, LocalProvider, local_provider

pytestmark = pytest.mark.anyio

NOW = SystemClock().now().ns // 1_000_000_000


class CountingClock(SystemClock):
    """A clock that writes down how long is slept, and sleeps a thousandth of it."""

    def __init__(self) -> None:
        self.slept: list[float] = []

    async def sleep(self, span: Duration) -> None:
        self.slept.append(round(span.seconds, 2))
        await super().sleep(Duration.of(seconds=span.seconds / 1000))


async def test_a_login_is_confirmed_and_names_the_user():
    async with local_provider(LocalProvider(answers=["authorization_pending"])) as provider:
        client = OpenIdClient(SystemClock())
        login = await client.begin(provider.spec)
        assert (login.url, login.code) == (f"{provider.issuer}/activate", "ABCD-EFGH")
        assert "device_code" not in repr(login)
        assert await client.user(provider.spec, await client.token(provider.spec, login)) == "eve"
        assert len(provider.polls) == 2


async def test_a_client_that_is_too_fast_slows_down():
    answers = ["authorization_pending", "slow_down", "slow_down", "authorization_pending"]
    async with local_provider(LocalProvider(answers=answers, device={"interval": 5})) as provider:
        clock = CountingClock()
        client = OpenIdClient(clock)
        await client.token(provider.spec, await client.begin(provider.spec))
        assert clock.slept == [5, 5, 10, 15, 15]


@pytest.mark.parametrize(
    ("answers", "words"),
    [
        (["access_denied"], "was denied at the identity provider"),
        (["authorization_pending", "invalid_grant"], "refused the login: invalid_grant"),
        (["expired_token"], "was not confirmed in time"),
    ],
)
async def test_a_login_that_is_not_confirmed_has_no_token(answers: list[str], words: str):
    async with local_provider(LocalProvider(answers=answers)) as provider:
        client = OpenIdClient(SystemClock())
        login = await client.begin(provider.spec)
        with pytest.raises((Denied, Deadline), match=words):
            await client.token(provider.spec, login)


async def test_a_login_ends_with_its_code():
    answers = ["authorization_pending"] * 1000
    async with local_provider(LocalProvider(answers=answers, device={"expires_in": 0.3})) as provider:
        client = OpenIdClient(SystemClock())
        login = await client.begin(provider.spec)
        with pytest.raises(Deadline, match="was not confirmed in time"):
            await client.token(provider.spec, login)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"iss": "https://other.example.com"}, "Invalid issuer"),
        ({"iss": None}, 'missing the "iss" claim'),
        ({"aud": "another"}, "Audience doesn't match"),
        ({"aud": None}, 'missing the "aud" claim'),
        ({"aud": [CLIENT, "another"], "azp": "another"}, "for another client"),
        ({"exp": NOW - 60}, "Signature has expired"),
        ({"exp": None}, 'missing the "exp" claim'),
        ({"iat": NOW + 600}, "not yet valid"),
        ({"nbf": NOW + 600}, "not yet valid"),
        ({"preferred_username": None}, "is not the name of a user"),
        ({"preferred_username": ["eve"]}, "is not the name of a user"),
        ({"preferred_username": "Eve"}, "is not the name of a user"),
        ({"preferred_username": "eve+mydev"}, "is not the name of a user"),
        ({"preferred_username": "../eve"}, "is not the name of a user"),
        ({"preferred_username": "eve\n"}, "is not the name of a user"),
        ({"preferred_username": "a" * 60}, "is not the name of a user"),
    ],
)
async def test_a_token_that_does_not_hold_names_nobody(changes: dict[str, Any], words: str):
    async with local_provider() as provider:
        client = OpenIdClient(SystemClock())
        assert await client.user(provider.spec, provider.token()) == "eve"
        with pytest.raises(Denied, match=words):
            await client.user(provider.spec, provider.token(**changes))


@pytest.mark.parametrize(("algorithm", "key_id"), [("HS256", "key-1"), ("none", "key-1"), ("ES256", "key-2")])
async def test_a_token_of_another_key_or_algorithm_names_nobody(algorithm: str, key_id: str):
    async with local_provider() as provider:
        provider.algorithm, provider.key_id = algorithm, key_id
        with pytest.raises(Denied, match=r"key|algorithm"):
            await OpenIdClient(SystemClock()).user(provider.spec, provider.token())


async def test_a_token_that_was_changed_names_nobody():
    async with local_provider() as provider, local_provider() as other:
        other.issuer = provider.issuer
        for token in (other.token(), provider.token()[:-8] + "AAAAAAAA", "a.b.c", "", "x" * 20_000):
            with pytest.raises(Denied):
                await OpenIdClient(SystemClock()).user(provider.spec, token)


@pytest.mark.parametrize(
    ("settings", "claims", "user"),
    [
        ({"username_suffix": "@example.com"}, {"preferred_username": "eve@example.com"}, "eve"),
        ({"username_suffix": "@example.com"}, {"preferred_username": "eve@example.org"}, None),
        ({"username_suffix": "@example.com"}, {"preferred_username": "eve@example.com@example.com"}, None),
        ({"username_claim": "sub"}, {"sub": "eve-2"}, "eve-2"),
        ({"username_claim": "email", "username_suffix": "@x.io"}, {"email": "eve@x.io"}, None),
        (
            {"username_claim": "email", "username_suffix": "@x.io"},
            {"email": "eve@x.io", "email_verified": True},
            "eve",
        ),
        ({"groups": ("gpu",)}, {"groups": ["all", "gpu"]}, "eve"),
        ({"groups": ("gpu",)}, {"groups": ["all"]}, None),
        ({"groups": ("gpu",)}, {"groups": "gpu"}, None),
        ({"groups": ("gpu",)}, {}, None),
    ],
)
async def test_a_claim_is_mapped_to_the_name_of_a_user(
    settings: dict[str, Any], claims: dict[str, Any], user: str | None
):
    async with local_provider() as provider:
        client, spec = OpenIdClient(SystemClock()), structs.replace(provider.spec, **settings)
        token = provider.token(**claims)
        if user is not None:
            assert await client.user(spec, token) == user
        else:
            with pytest.raises(Denied):
                await client.user(spec, token)


@pytest.mark.parametrize(
    ("published", "device", "words"),
    [
        ({"issuer": "https://other.example.com"}, {}, "publishes another issuer"),
        ({"device_authorization_endpoint": None}, {}, "no usable device_authorization_endpoint"),
        ({"device_authorization_endpoint": "http://x.example.com/"}, {}, "is not an https address"),
        ({"jwks_uri": "file:///etc/passwd"}, {}, "is not an https address"),
        ({}, {"user_code": "\x1b[2Jcode"}, "no usable user_code"),
        ({}, {"verification_uri": ""}, "no usable verification_uri"),
        ({}, {"user_code": "x" * 1000}, "no usable user_code"),
        ({}, {"interval": "soon"}, "no usable interval"),
        ({}, {"expires_in": -1}, "no usable expires_in"),
        ({}, {"padding": "x" * 300_000}, "is too long"),
    ],
)
async def test_a_provider_that_answers_nonsense_is_not_used(
    published: dict[str, Any], device: dict[str, Any], words: str
):
    async with local_provider(LocalProvider(published=published, device=device)) as provider:
        with pytest.raises(Retry, match=words):
            await OpenIdClient(SystemClock()).begin(provider.spec)


async def test_a_provider_that_is_away_is_said_to_be():
    async with local_provider() as provider:
        pass
    with pytest.raises(Retry, match="cannot be reached"):
        await OpenIdClient(SystemClock()).begin(provider.spec)
