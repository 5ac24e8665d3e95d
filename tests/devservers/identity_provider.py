"""An OpenID Connect provider on loopback, with the device flow of RFC 8628."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import jwt
from aiohttp import web
from aiohttp.test_utils import TestServer as LocalServer
from cryptography.hazmat.primitives.asymmetric import ec
from jwt.algorithms import ECAlgorithm

from neorion.devservers.model.login import IdentityProvider
from neorion.keel.clock import SystemClock

CLIENT = "devservers-bastion"


@dataclass
class LocalProvider:
    """`answers` are the errors of the first polls, in order; then the login is confirmed with `claims`."""

    answers: list[str] = field(default_factory=list[str])
    claims: dict[str, Any] = field(default_factory=dict[str, Any])
    published: dict[str, Any] = field(default_factory=dict[str, Any])
    device: dict[str, Any] = field(default_factory=dict[str, Any])
    algorithm: str = "ES256"
    key_id: str = "key-1"
    polls: list[float] = field(default_factory=list[float])
    issuer: str = ""
    key: ec.EllipticCurvePrivateKey = field(default_factory=lambda: ec.generate_private_key(ec.SECP256R1()))

    @property
    def spec(self) -> IdentityProvider:
        return IdentityProvider(issuer=self.issuer, client_id=CLIENT)

    def token(self, **changes: Any) -> str:
        now = SystemClock().now().ns // 1_000_000_000
        claims = {
            "iss": self.issuer,
            "aud": CLIENT,
            "iat": now,
            "exp": now + 300,
            "preferred_username": "eve",
        }
        known = {
            name: value for name, value in {**claims, **self.claims, **changes}.items() if value is not None
        }
        secrets = {"ES256": self.key, "HS256": "a secret of more than thirty-two letters"}
        return jwt.encode(
            known, secrets.get(self.algorithm, ""), self.algorithm, headers={"kid": self.key_id}
        )

    async def discovery(self, _request: web.Request) -> web.Response:
        known = {
            "issuer": self.issuer,
            "device_authorization_endpoint": f"{self.issuer}/device",
            "token_endpoint": f"{self.issuer}/token",
            "jwks_uri": f"{self.issuer}/keys",
        }
        return web.json_response({**known, **self.published})

    async def keys(self, _request: web.Request) -> web.Response:
        public = ECAlgorithm.to_jwk(self.key.public_key(), as_dict=True)
        return web.json_response({"keys": [{**public, "kid": "key-1", "alg": "ES256", "use": "sig"}]})

    async def begin(self, request: web.Request) -> web.Response:
        form = await request.post()
        assert (form["client_id"], form["scope"]) == (CLIENT, "openid profile")
        given = {
            "device_code": "device",
            "user_code": "ABCD-EFGH",
            "verification_uri": f"{self.issuer}/activate",
            "expires_in": 600,
            "interval": 0.05,
        }
        return web.json_response({**given, **self.device})

    async def poll(self, request: web.Request) -> web.Response:
        assert (await request.post())["device_code"] == "device"
        self.polls.append(SystemClock().monotonic())
        if self.answers:
            return web.json_response({"error": self.answers.pop(0)}, status=400)
        return web.json_response({"access_token": "x", "token_type": "Bearer", "id_token": self.token()})


@asynccontextmanager
async def local_provider(provider: LocalProvider | None = None) -> AsyncGenerator[LocalProvider]:
    provider = provider or LocalProvider()
    app = web.Application()
    app.router.add_get("/.well-known/openid-configuration", provider.discovery)
    app.router.add_get("/keys", provider.keys)
    app.router.add_post("/device", provider.begin)
    app.router.add_post("/token", provider.poll)
    async with LocalServer(app) as server:
        provider.issuer = str(server.make_url("/")).rstrip("/")
        yield provider
