"""Checks the evidence of first logins, apart from the bastion that took it."""

from neorion.devservers.adapters.identity.authorities import UserAuthorities, check_certificate
from neorion.devservers.model.login import DevServerLoginPolicySpec, DevServerUserRequestSpec


class EvidenceVerifier:
    """Trusts the same authorities as the bastion."""

    def __init__(self, authorities: UserAuthorities) -> None:
        self._authorities = authorities

    async def verify(self, request: DevServerUserRequestSpec, policy: DevServerLoginPolicySpec) -> None:
        del policy
        check_certificate(request.certificate, request.user, self._authorities)
