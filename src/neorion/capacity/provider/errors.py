"""Errors of clouds, in one form for all of them. `words` are the cloud's own text, cut and escaped.

| refusal | family | the buyer |
|---|---|---|
| no_capacity | NoCapacity | asks in another zone, then region, then cloud |
| quota | QuotaExceeded | asks elsewhere, and gives back before it buys |
| not_allowed | Denied | does not use this cloud until its credentials are corrected |
| rate_limited | Retry | waits |
| unknown_outcome | Deadline | repeats the request with the same intent |
| refused | Invalid | reports it to a person: the request itself is wrong |
| no_machine | NotFound | is done, if it wanted it gone |
"""

from neorion.keel.base import Deadline, Denied, Duration, Invalid, NoCapacity, NotFound, QuotaExceeded, Retry

# A cloud's message can be a whole page; this much shows the reason.
WORDS_MAX = 300


def no_capacity(provider: str, scope: str, words: str = "") -> NoCapacity:
    return NoCapacity(
        "provider.no_capacity",
        f"{provider} has no such machine in {scope} now{_quoted(words)}.",
        hint="Wait for the next try, which starts elsewhere.",
        scope=scope,
    )


def quota(provider: str, scope: str, words: str = "") -> QuotaExceeded:
    return QuotaExceeded(
        "provider.quota",
        f"The quota at {provider} in {scope} is used up{_quoted(words)}.",
        hint="Ask the provider for more quota, or allow the pool another one.",
        scope=scope,
    )


def quota_not_set(provider: str, scope: str, words: str = "") -> QuotaExceeded:
    return QuotaExceeded(
        "provider.quota_not_set",
        f"There is no quota at {provider} in {scope}{_quoted(words)}.",
        hint="Ask the provider for quota of this machine type.",
        scope=scope,
    )


def not_allowed(provider: str, words: str = "") -> Denied:
    return Denied(
        "provider.not_allowed",
        f"{provider} does not accept these credentials for this{_quoted(words)}.",
        hint="Check the key and its rights: until then machines are neither bought nor given back.",
    )


def rate_limited(provider: str, after: Duration | None = None, words: str = "") -> Retry:
    return Retry(
        "provider.rate_limit",
        f"{provider} limits the rate of requests{_quoted(words)}.",
        hint="Wait.",
        after=after,
    )


def unknown_outcome(provider: str, words: str = "") -> Deadline:
    return Deadline(
        "provider.unknown_outcome",
        f"{provider} did not say whether it was done{_quoted(words)}.",
        hint="Send it again with the same intent: it is done once.",
    )


def refused(provider: str, words: str) -> Invalid:
    return Invalid(
        "provider.refused",
        f"{provider} refuses the request{_quoted(words)}.",
        hint="Correct the pool's settings.",
    )


def no_machine(provider: str, machine: str) -> NotFound:
    return NotFound(
        "provider.no_machine",
        f"{provider} has no machine {machine[:80]}.",
        hint="List the provider's machines in its own console.",
    )


def _quoted(words: str) -> str:
    text = " ".join(word for word in words.split() if word.isprintable())[:WORDS_MAX].rstrip(".")
    return f": {text}" if text else ""
