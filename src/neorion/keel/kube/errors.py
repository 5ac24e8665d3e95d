"""Translates error responses of the API server to error families."""

from collections.abc import Callable, Sequence

from msgspec import Struct, field

from neorion.keel.base import (
    Conflict,
    Deadline,
    Denied,
    Duration,
    Error,
    Invalid,
    NotFound,
    QuotaExceeded,
    Retry,
    Terminal,
    Unauthenticated,
)

# Enough to find the mistake; the server may list hundreds.
CAUSES_MAX = 5
# The field of a cause that concerns the whole object.
_NOWHERE = frozenset({"", "<nil>"})


class ResourceExpired(Conflict):
    """The version to watch or list from has expired: list again."""

    def __init__(self, sentence: str) -> None:
        super().__init__("kube.expired", sentence, hint="List again and watch from there.")


class AlreadyExists(Conflict):
    """An object of that name exists."""

    def __init__(self, sentence: str) -> None:
        super().__init__("kube.exists", sentence, hint="Read the one that is there, or choose another name.")


class UnknownKind(NotFound):
    """The server does not have this kind, which says nothing about objects of that name elsewhere."""

    def __init__(self, sentence: str) -> None:
        super().__init__(
            "kube.unknown_kind", sentence, hint="Install its CustomResourceDefinition, or check its version."
        )


class ServerError(Retry):
    """The server failed to process the request, for instance because a webhook that it calls is not reachable."""

    def __init__(self, sentence: str, after: Duration | None = None) -> None:
        super().__init__(
            "kube.failed", sentence, hint="Try again later, and look at the server's log.", after=after
        )


class StatusCause(Struct, frozen=True, rename="camel"):
    """One of several reasons, with the field that it concerns."""

    reason: str = ""
    message: str = ""
    field: str = ""


class InvalidObject(Invalid):
    """The server rejected the object; `causes` names the fields."""

    def __init__(self, sentence: str, causes: Sequence[StatusCause] = ()) -> None:
        where = ", ".join(
            sorted({cause.field for cause in causes if cause.field not in _NOWHERE})[:CAUSES_MAX]
        )
        super().__init__("kube.invalid", sentence, hint=f"Correct {where or 'the object'}.")
        self.causes = tuple(causes)


class StatusDetails(Struct, frozen=True, rename="camel"):
    """The object and the reasons of an error response."""

    name: str = ""
    kind: str = ""
    causes: tuple[StatusCause, ...] = ()
    retry_after_seconds: int = 0


class Status(Struct, frozen=True, rename="camel"):
    """The body of an error response, and the final message of a stream."""

    status: str = ""
    message: str = ""
    reason: str = ""
    code: int = 0
    details: StatusDetails = field(default=StatusDetails())


def refusal(status: Status, after: Duration | None = None) -> Error:
    """The error for a Status; `after` is the Retry-After of its response."""
    sentence = status.message or f"The API server answered {status.code} {status.reason}".rstrip() + "."
    seconds = status.details.retry_after_seconds
    after = after or (Duration.of(seconds=seconds) if seconds else None)
    if status.code >= 500:
        return _later(status, sentence, after)
    if status.code == 429:
        return _throttled(status, sentence, after)
    return _REFUSALS.get(status.code, _bad_request)(status, sentence)


def misshapen(kind: str, why: Exception) -> Terminal:
    """The error for a response that does not fit the type declared for its kind."""
    return Terminal(
        "kube.shape",
        f"The response of the server does not fit the type declared for {kind}: {why}.",
        hint="Declare the field as the server sends it.",
    )


def _bad_request(_status: Status, sentence: str) -> Error:
    return Invalid("kube.bad_request", sentence, hint="Correct the request.")


def _unauthenticated(_status: Status, sentence: str) -> Error:
    return Unauthenticated(
        "kube.unauthenticated", sentence, hint="Renew the credentials of the kubeconfig's user."
    )


def _denied(_status: Status, sentence: str) -> Error:
    if "exceeded quota" in sentence:
        return QuotaExceeded(
            "kube.quota", sentence, hint="Delete something, or ask for a larger ResourceQuota."
        )
    return Denied("kube.denied", sentence, hint="Ask for a Role that allows it.")


def _not_found(status: Status, sentence: str) -> Error:
    if not status.details.name:
        return UnknownKind(sentence)
    return NotFound("kube.not_found", sentence, hint="Check the name and the namespace.")


def _unsupported(_status: Status, sentence: str) -> Error:
    return Terminal("kube.unsupported", sentence, hint="Use a server that supports the call.")


def _conflict(status: Status, sentence: str) -> Error:
    if status.reason == "AlreadyExists":
        return AlreadyExists(sentence)
    return Conflict("kube.conflict", sentence, hint="Read the object again and decide again.")


def _expired(_status: Status, sentence: str) -> Error:
    return ResourceExpired(sentence)


def _too_large(_status: Status, sentence: str) -> Error:
    return Invalid("kube.too_large", sentence, hint="Make the object smaller.")


def _rejected(status: Status, sentence: str) -> Error:
    return InvalidObject(sentence, status.details.causes)


_REFUSALS: dict[int, Callable[[Status, str], Error]] = {
    401: _unauthenticated,
    403: _denied,
    404: _not_found,
    405: _unsupported,
    406: _unsupported,
    409: _conflict,
    410: _expired,
    413: _too_large,
    415: _unsupported,
    422: _rejected,
}


def _throttled(status: Status, sentence: str, after: Duration | None) -> Error:
    if any(cause.reason == "DisruptionBudget" for cause in status.details.causes):
        return Retry(
            "kube.disruption_budget", sentence, hint="Wait until more of its pods are ready.", after=after
        )
    return Retry("kube.throttled", sentence, hint="Send fewer requests.", after=after)


def _later(status: Status, sentence: str, after: Duration | None) -> Error:
    if status.code == 504:
        return Deadline("kube.timeout", sentence, hint="Read the object before trying again.", after=after)
    if status.code == 503:
        return Retry("kube.unavailable", sentence, hint="Try again later.", after=after)
    return ServerError(sentence, after)
