"""Translates errors of Compute Engine, from calls and from operations, to those of `capacity.provider`."""

from typing import Any, Final, cast

from google.api_core.exceptions import GoogleAPICallError
from google.auth.exceptions import GoogleAuthError, TransportError
from google.protobuf.json_format import ParseError
from requests.exceptions import RequestException

from neorion.capacity.gcp.api_types import Operation
from neorion.capacity.provider import (
    no_capacity,
    not_allowed,
    quota,
    rate_limited,
    refused,
    unknown_outcome,
)
from neorion.keel.base import Duration, Error

# All exceptions that a call of the client may raise.
FAILURES: Final = (GoogleAPICallError, GoogleAuthError, RequestException, ParseError)
# A longer wait is taken for a mistake.
_AFTER_S_MOST: Final = 3_600

_NO_CAPACITY: Final = frozenset(
    {
        "GPU_STOCKOUT",
        "REGION_RESOURCE_POOL_EXHAUSTED",
        "RESOURCE_POOL_EXHAUSTED",
        "ZONE_RESOURCE_POOL_EXHAUSTED",
        "ZONE_RESOURCE_POOL_EXHAUSTED_WITH_DETAILS",
        "insufficientCapacity",
        # Google's code for a spot machine that was reclaimed during its creation.
        "UNSUPPORTED_OPERATION",
    }
)
_QUOTA: Final = frozenset({"LIMIT_EXCEEDED", "QUOTA_EXCEEDED", "limitExceeded", "quotaExceeded"})
_RATE: Final = frozenset(
    {"RATE_LIMIT_EXCEEDED", "concurrentLimitExceeded", "rateLimitExceeded", "userRateLimitExceeded"}
)
_NOT_ALLOWED: Final = frozenset({"PERMISSIONS_ERROR", "SERVICE_NOT_FOUND"})
# Another operation on the same resource is in progress: try again.
_BUSY: Final = frozenset({"operationInProgress", "resourceInUseByAnotherResource", "resourceNotReady"})


def refusal(provider: str, scope: str, error: Exception) -> Error:
    """Translates an exception of the client. `scope` is the zone, the region or the machine of the call."""
    match error:
        case GoogleAPICallError():
            return _answered(provider, scope, error)
        case TransportError() | RequestException() | ParseError():
            # Only the type is included, because texts of clients may contain the request.
            return unknown_outcome(provider, f"{type(error).__name__} at {scope}")
        case GoogleAuthError():
            return not_allowed(provider, type(error).__name__)
        case _:
            raise error


def failed(provider: str, scope: str, operation: Operation) -> Error | None:
    """The error of an operation that is done; None if it succeeded."""
    errors = operation.error.errors
    if not errors and operation.http_error_status_code < 400:
        return None
    code = errors[0].code if errors else operation.http_error_message
    words = f"{code}: {errors[0].message}" if errors else code
    return _by_code(provider, scope, code, words) or refused(provider, words)


def _answered(provider: str, scope: str, error: GoogleAPICallError) -> Error:
    reasons = [str(one.get("reason", "")) for one in cast("list[dict[str, Any]]", error.errors)]
    reason, status = (reasons or [""])[0], int(error.code or 0)
    words = f"{reason or status}: {error.message}"
    translated = _by_code(provider, scope, reason, words)
    if translated is not None:
        return translated
    if status in (401, 403):
        return not_allowed(provider, words)
    if status == 429:
        return rate_limited(provider, _after(error), words)
    if status >= 500 or reason in _BUSY:
        return unknown_outcome(provider, words)
    return refused(provider, words)


def _by_code(provider: str, scope: str, code: str, words: str) -> Error | None:
    if code in _NO_CAPACITY:
        return no_capacity(provider, scope, words)
    if code in _QUOTA:
        return quota(provider, scope, words)
    if code in _RATE:
        return rate_limited(provider, words=words)
    if code in _NOT_ALLOWED:
        return not_allowed(provider, words)
    return None


def is_status(error: Exception, status: int) -> bool:
    return isinstance(error, GoogleAPICallError) and error.code == status


def _after(error: GoogleAPICallError) -> Duration | None:
    response = cast("Any", error).response
    text = str(response.headers.get("Retry-After", "")) if response is not None else ""
    return Duration.of(seconds=min(int(text), _AFTER_S_MOST)) if text.isdecimal() else None
