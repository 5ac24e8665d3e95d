"""OpenID Connect: device logins, and the users that tokens name."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, cast
from urllib.parse import urlsplit

import aiohttp
import anyio
import jwt

from neorion.devservers.decide.login import user_of_claim
from neorion.devservers.model.login import IdentityProvider
from neorion.keel.base import Deadline, Denied, Duration, Retry
from neorion.keel.clock import Clock

# Those that a public key verifies.
_ALGORITHMS: Final = (
    "RS256",
    "RS384",
    "RS512",
    "PS256",
    "PS384",
    "PS512",
    "ES256",
    "ES384",
    "ES512",
    "EdDSA",
)
_GRANT: Final = "urn:ietf:params:oauth:grant-type:device_code"
_PATIENCE_S: Final = 10.0
_SIZE_MAX: Final = 256 * 1024
_KEPT_S: Final = 3600.0
# An unknown key has the keys fetched again, but not for each token.
_AGAIN_S: Final = 10.0
_LEEWAY_S: Final = 10
# RFC 8628: the interval without one, and what is added to it on slow_down.
_INTERVAL_S: Final = 5.0
_SLOWER_S: Final = 5.0
_LIFE_MAX_S: Final = 900.0
_TEXT_MAX: Final = 512

Json = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class DeviceLogin:
    """A login that the user confirms at `url` with `code`, before it is over after `life`."""

    url: str
    code: str
    life: Duration
    interval: Duration
    device_code: str = field(repr=False)


@dataclass(slots=True)
class _Known:
    """The endpoints and the keys of an issuer, and when they were read."""

    endpoints: Json
    keys: jwt.PyJWKSet
    read: float


class OpenIdClient:
    """Redirects are not followed, and answers are bounded."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._known: dict[str, _Known] = {}

    async def begin(self, provider: IdentityProvider) -> DeviceLogin:
        known = await self._issuer(provider)
        form = {"client_id": provider.client_id, "scope": " ".join(provider.scopes)}
        status, answer = await self._post(_endpoint(known.endpoints, "device_authorization_endpoint"), form)
        if status != 200:
            raise _unusable(f"It refused the device login with {status}")
        url = _text(answer, "verification_uri_complete", optional=True) or _text(answer, "verification_uri")
        return DeviceLogin(
            url,
            _text(answer, "user_code"),
            Duration.of(seconds=min(_number(answer, "expires_in", _LIFE_MAX_S), _LIFE_MAX_S)),
            Duration.of(seconds=_number(answer, "interval", _INTERVAL_S)),
            _text(answer, "device_code"),
        )

    async def token(self, provider: IdentityProvider, login: DeviceLogin) -> str:
        """Waits until the user has confirmed the login. Returns the token of the user."""
        known = await self._issuer(provider)
        form = {"grant_type": _GRANT, "device_code": login.device_code, "client_id": provider.client_id}
        interval = login.interval
        with anyio.move_on_after(login.life.seconds):
            while True:
                await self._clock.sleep(interval)
                try:
                    status, answer = await self._post(_endpoint(known.endpoints, "token_endpoint"), form)
                except Retry:
                    # RFC 8628: fewer requests to a server that does not answer.
                    interval = Duration.of(seconds=interval.seconds * 2)
                    continue
                if status == 200:
                    return _text(answer, "id_token", limit=_SIZE_MAX)
                match answer.get("error"):
                    case "authorization_pending":
                        continue
                    case "slow_down":
                        interval = Duration.of(seconds=interval.seconds + _SLOWER_S)
                    case "expired_token":
                        break
                    case "access_denied":
                        raise _refused("The login was denied at the identity provider.")
                    case other:
                        raise _refused(f"The identity provider refused the login: {str(other)[:80]}.")
        raise Deadline(
            "devservers.device_login_late",
            "The login was not confirmed in time.",
            hint="Log in again and confirm the new code.",
        )

    async def user(self, provider: IdentityProvider, token: str) -> str:
        """The user that a token names. Raises Denied for a token that does not hold."""
        claims = await self._claims(provider, token)
        if claims.get("azp", provider.client_id) != provider.client_id:
            raise _refused("The token is for another client.")
        if provider.username_claim == "email" and claims.get("email_verified") is not True:
            raise _refused("The identity provider has not verified the email address.")
        value = claims.get(provider.username_claim)
        user = user_of_claim(value, provider.username_suffix) if isinstance(value, str) else None
        if user is None:
            raise _refused(f"The claim {provider.username_claim} is not the name of a user.")
        groups = claims.get(provider.groups_claim, ())
        named = set(map(str, cast("list[object]", groups))) if isinstance(groups, list) else set[str]()
        if provider.groups and named.isdisjoint(provider.groups):
            raise _refused(f"{user} is in none of the groups that may log in.")
        return user

    async def _claims(self, provider: IdentityProvider, token: str) -> Json:
        try:
            header = jwt.get_unverified_header(token)
        except jwt.InvalidTokenError:
            raise _refused("The token cannot be read.") from None
        key = await self._key(provider, str(header.get("kid", "")))
        if header.get("alg") not in _ALGORITHMS:
            raise _refused("The token is signed by an algorithm that is not allowed.")
        try:
            return jwt.decode(
                token,
                key,
                algorithms=_ALGORITHMS,
                audience=provider.client_id,
                issuer=provider.issuer,
                leeway=_LEEWAY_S,
                options={"require": ["exp", "iat", "iss", "aud"]},
            )
        except jwt.InvalidTokenError as error:
            raise _refused(f"The token does not hold: {error}.") from None

    async def _key(self, provider: IdentityProvider, name: str) -> jwt.PyJWK:
        known = await self._issuer(provider)
        found = _find(known.keys.keys, name)
        if found is None and self._clock.monotonic() - known.read > _AGAIN_S:
            del self._known[provider.issuer]
            known = await self._issuer(provider)
            found = _find(known.keys.keys, name)
        if found is None:
            raise _refused("The token is signed by a key that the identity provider does not publish.")
        return found

    async def _issuer(self, provider: IdentityProvider) -> _Known:
        issuer, now = provider.issuer, self._clock.monotonic()
        known = self._known.get(issuer)
        if known is not None and now - known.read < _KEPT_S:
            return known
        endpoints = await self._get(f"{issuer.rstrip('/')}/.well-known/openid-configuration")
        if endpoints.get("issuer") != issuer:
            raise _unusable("It publishes another issuer")
        keys = await self._get(_endpoint(endpoints, "jwks_uri"))
        try:
            known = _Known(endpoints, jwt.PyJWKSet.from_dict(dict(keys)), now)
        except (jwt.PyJWTError, AttributeError, TypeError, ValueError):
            raise _unusable("Its keys cannot be read") from None
        self._known[issuer] = known
        return known

    async def _get(self, url: str) -> Json:
        status, answer = await self._call("GET", url, None)
        if status != 200:
            raise _unusable(f"It answered {status}")
        return answer

    async def _post(self, url: str, form: Mapping[str, str]) -> tuple[int, Json]:
        return await self._call("POST", url, form)

    async def _call(self, method: str, url: str, form: Mapping[str, str] | None) -> tuple[int, Json]:
        try:
            async with (
                aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=_PATIENCE_S)) as session,
                session.request(method, url, data=form, allow_redirects=False) as answer,
            ):
                content = bytearray()
                async for part in answer.content.iter_any():
                    content += part
                    if len(content) > _SIZE_MAX:
                        raise _unusable("Its answer is too long")
                found = json.loads(content)
                status = answer.status
        except (aiohttp.ClientError, TimeoutError) as error:
            raise _unusable(f"It cannot be reached: {type(error).__name__}") from None
        except (ValueError, RecursionError):
            raise _unusable("Its answer is not JSON") from None
        if not isinstance(found, dict) or status >= 500:
            raise _unusable(f"It answered {status}")
        return status, cast("Json", found)


def _find(keys: Sequence[jwt.PyJWK], name: str) -> jwt.PyJWK | None:
    """A token without the name of its key is signed by the only key there is."""
    if not name and len(keys) == 1:
        return keys[0]
    return next((one for one in keys if one.key_id == name and name), None)


def _endpoint(endpoints: Json, name: str) -> str:
    url = _text(endpoints, name)
    parts = urlsplit(url)
    loopback = parts.hostname in {"127.0.0.1", "localhost"}
    if parts.scheme != "https" and not (parts.scheme == "http" and loopback):
        raise _unusable(f"Its {name} is not an https address")
    return url


def _text(answer: Json, name: str, *, optional: bool = False, limit: int = _TEXT_MAX) -> str:
    """A text for a terminal or a request: printable, and not long."""
    value = answer.get(name)
    if optional and value is None:
        return ""
    if not isinstance(value, str) or not value or len(value) > limit or not value.isprintable():
        raise _unusable(f"Its answer has no usable {name}")
    return value


def _number(answer: Json, name: str, default: float) -> float:
    value = answer.get(name, default)
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < 1e6:
        raise _unusable(f"Its answer has no usable {name}")
    return float(value)


def _unusable(why: str) -> Retry:
    return Retry(
        "devservers.identity_provider",
        f"The identity provider cannot be used now. {why}.",
        hint="Log in again in a minute, or with a key.",
    )


def _refused(sentence: str) -> Denied:
    return Denied("devservers.identity_refused", sentence, hint="Log in again, or ask an administrator.")
