"""Judgements about traffic through a gateway: how requests were split, and where each kind of them went."""

import math
from collections.abc import Mapping, Sequence
from typing import Any, Final

from neorion.conformance.model import Assertion

Json = Mapping[str, Any]

# How rarely a gateway that splits as it should is called wrong.
ALPHA: Final = 1e-4


def chance(hits: int, total: int, share: float) -> float:
    """The probability of a count at least as unlikely as this one, by the exact two-sided binomial test."""
    odds = [_odds(count, total, share) for count in range(total + 1)]
    return min(1.0, sum(each for each in odds if each <= odds[hits] * (1 + 1e-9)))


def split_as(name: str, counts: Mapping[str, int], weights: Mapping[str, int]) -> Assertion:
    """Each backend's count fits its weight; one of weight 0 has none, and nothing else answered."""
    total, whole = sum(counts.values()), sum(weights.values())
    problems = [
        f"{backend} answered and has no weight"
        for backend in counts
        if not weights.get(backend) and counts[backend]
    ]
    for backend, weight in weights.items():
        hits = counts.get(backend, 0)
        if weight and (not total or chance(hits, total, weight / whole) < ALPHA):
            problems.append(f"{backend} has {hits} of {total} at a weight of {weight} of {whole}")
    seen = ", ".join(f"{backend} {count}" for backend, count in sorted(counts.items())) or "no answer"
    return Assertion(name, not problems, f"{seen}. {'; '.join(problems)}".strip())


def all_from(name: str, counts: Mapping[str, int], backend: str, total: int) -> Assertion:
    seen = ", ".join(f"{each} {count}" for each, count in sorted(counts.items())) or "no answer"
    return Assertion(name, dict(counts) == {backend: total}, f"{seen} of {total}.")


def refused(status: int) -> Assertion:
    return Assertion(
        "a host that no route has is not found", status == 404, f"The gateway answered {status}."
    )


def streamed(first: float, last: float, pause: float) -> Assertion:
    """The first part arrived before the last was sent."""
    return Assertion(
        "a stream passes as it comes",
        last - first >= pause / 2,
        f"The first part came {last - first:.2f} s before the last; they were sent {pause:g} s apart.",
    )


def programmed(gateway: Json | None) -> Assertion:
    """Both conditions for the newest generation, and an address."""
    gateway = gateway or {}
    conditions = {each["type"]: each for each in gateway.get("status", {}).get("conditions", [])}
    generation = gateway.get("metadata", {}).get("generation")
    lacking = [
        name
        for name in ("Accepted", "Programmed")
        if conditions.get(name, {}).get("status") != "True"
        or conditions[name].get("observedGeneration") != generation
    ]
    if not addresses(gateway):
        lacking.append("an address")
    return Assertion("the gateway is programmed", not lacking, f"Lacking: {', '.join(lacking) or 'nothing'}.")


def addresses(gateway: Json) -> list[str]:
    return [str(each["value"]) for each in gateway.get("status", {}).get("addresses", [])]


def resolved(name: str, route: Json | None, *, expected: bool) -> Assertion:
    """The status of a route's references, as its gateway reports it for the newest generation."""
    found = references(route)
    held = found == ("True" if expected else "False")
    return Assertion(name, held, f"ResolvedRefs is {found or 'not stated'}.")


def references(route: Json | None) -> str:
    generation = (route or {}).get("metadata", {}).get("generation")
    parents: Sequence[Json] = (route or {}).get("status", {}).get("parents", [])
    conditions = [each for parent in parents for each in parent.get("conditions", [])]
    current = [
        str(each["status"])
        for each in conditions
        if each["type"] == "ResolvedRefs" and each.get("observedGeneration") == generation
    ]
    return current[0] if current else ""


def server_script(port: int, name: str, pause: int) -> str:
    """A backend for any shell with httpd: it says its name, and streams two parts."""
    return f"""mkdir -p /tmp/www/cgi-bin
cat > /tmp/www/cgi-bin/who <<'END'
#!/bin/sh
printf 'Content-Type: text/plain\\r\\n\\r\\n{name}'
END
cat > /tmp/www/cgi-bin/stream <<'END'
#!/bin/sh
printf 'Content-Type: text/event-stream\\r\\n\\r\\ndata: first\\n\\n'
sleep {pause}
printf 'data: last\\n\\n'
END
chmod +x /tmp/www/cgi-bin/*
exec httpd -f -p {port} -h /tmp/www"""


def _odds(hits: int, total: int, share: float) -> float:
    if share in {0.0, 1.0}:
        return float(hits == total * share)
    log = math.lgamma(total + 1) - math.lgamma(hits + 1) - math.lgamma(total - hits + 1)
    return math.exp(log + hits * math.log(share) + (total - hits) * math.log(1 - share))
