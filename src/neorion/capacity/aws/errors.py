"""Translates errors of EC2 to those of `capacity.provider`."""

from typing import Any, cast

from botocore.exceptions import (  # pyright: ignore[reportMissingTypeStubs] -- the vendor ships no types
    BotoCoreError,
    ClientError,
    ConfigNotFound,
    ConnectionError,  # noqa: A004 -- the client's own class, which is not the builtin
    HTTPClientError,
    NoCredentialsError,
    PartialCredentialsError,
    ProfileNotFound,
    TokenRetrievalError,
)

from neorion.capacity.provider import (
    no_capacity,
    no_machine,
    not_allowed,
    quota,
    rate_limited,
    refused,
    unknown_outcome,
)
from neorion.keel.base import Error

_NO_CAPACITY = frozenset(
    {
        "InsufficientCapacity",
        "InsufficientFreeAddressesInSubnet",
        "InsufficientHostCapacity",
        "InsufficientInstanceCapacity",
        "InsufficientReservedInstanceCapacity",
        "ReservationCapacityExceeded",
        "SpotMaxPriceTooLow",
        # The type is not sold in this zone; another zone may have it.
        "Unsupported",
    }
)
_QUOTA = frozenset(
    {
        "InstanceLimitExceeded",
        "MaxSpotInstanceCountExceeded",
        "SpotInstanceCountLimitExceeded",
        "VcpuLimitExceeded",
        "VolumeLimitExceeded",
    }
)
_NOT_ALLOWED = frozenset(
    {
        "AccessDenied",
        "AuthFailure",
        "Blocked",
        "ExpiredToken",
        "InvalidClientTokenId",
        "MissingAuthenticationToken",
        "OptInRequired",
        "PendingVerification",
        "RequestExpired",
        "SignatureDoesNotMatch",
        "UnauthorizedOperation",
        "UnrecognizedClientException",
    }
)
_RATE = frozenset({"EC2ThrottledException", "RequestLimitExceeded", "Throttling", "ThrottlingException"})
_NO_MACHINE = frozenset({"InvalidInstanceID.Malformed", "InvalidInstanceID.NotFound"})
# The token was used with other parameters: its machine was bought, and will be listed in time.
_MISMATCH = "IdempotentParameterMismatch"


def to_provider_error(provider: str, scope: str, error: Exception) -> Error:
    """Translates an exception of the client. `scope` is the zone, the region or the machine of the call."""
    match error:
        case ClientError():
            return _answered(provider, scope, error)
        case (
            NoCredentialsError()
            | PartialCredentialsError()
            | ProfileNotFound()
            | ConfigNotFound()
            | TokenRetrievalError()
        ):
            return not_allowed(provider, str(error))
        case HTTPClientError() | ConnectionError():
            return unknown_outcome(provider, f"{type(error).__name__} at {scope}")
        case BotoCoreError():
            return refused(provider, str(error))
        case _:
            raise error


def _answered(provider: str, scope: str, error: ClientError) -> Error:
    response = cast("dict[str, Any]", error.response)
    details: dict[str, str] = response.get("Error", {})
    code = details.get("Code", "")
    words = f"{code}: {details.get('Message', '')}"
    scoped = {**dict.fromkeys(_NO_CAPACITY, no_capacity), **dict.fromkeys(_QUOTA, quota)}
    if code in scoped:
        return scoped[code](provider, scope, words)
    if code in _NOT_ALLOWED:
        return not_allowed(provider, words)
    if code in _RATE:
        return rate_limited(provider, words=words)
    if code in _NO_MACHINE:
        return no_machine(provider, scope)
    unsure = response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0) >= 500 or code == _MISMATCH
    return unknown_outcome(provider, words) if unsure else refused(provider, words)
