"""Evidence of who logs in: certificates of a company's authority, and tokens of an identity provider.

The bastion and the user controller check it apart from each other. Neither decides here who may log in.
"""

from neorion.devservers.adapters.identity.authorities import (
    UserAuthorities,
    certificate_line,
    check_certificate,
    wire_form,
)
from neorion.devservers.adapters.identity.openid import DeviceLogin, OpenIdClient
from neorion.devservers.adapters.identity.verifier import EvidenceVerifier

__all__ = [
    "DeviceLogin",
    "EvidenceVerifier",
    "OpenIdClient",
    "UserAuthorities",
    "certificate_line",
    "check_certificate",
    "wire_form",
]
