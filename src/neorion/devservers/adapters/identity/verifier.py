"""Checks the evidence of first logins, apart from the bastion that took it."""

from neorion.devservers.adapters.identity.authorities import UserAuthorities, check_certificate
from neorion.devservers.adapters.identity.openid import OpenIdClient
from neorion.devservers.model.login import DevServerLoginPolicySpec, DevServerUserRequestSpec
from neorion.keel.base import Denied


class EvidenceVerifier:
    """Trusts the same authorities as the bastion, and asks the identity provider itself."""

    def __init__(self, authorities: UserAuthorities, openid: OpenIdClient) -> None:
        self._authorities = authorities
        self._openid = openid

    async def verify(self, request: DevServerUserRequestSpec, policy: DevServerLoginPolicySpec) -> None:
        if request.certificate or policy.identity_provider is None:
            check_certificate(request.certificate, request.user, self._authorities)
            return
        named = await self._openid.user(policy.identity_provider, request.id_token)
        if named != request.user:
            raise Denied(
                "devservers.identity_refused",
                f"The token names {named}, and not {request.user}.",
                hint="Log in with the name that the identity provider knows.",
            )
