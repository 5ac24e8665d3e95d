"""What a type of a custom resource says of itself beyond its fields, for its schema: rules in CEL, and lists with keys."""

from collections.abc import Iterable
from typing import Any

from msgspec import Meta

Rule = tuple[str, str]


def rules(*checks: Rule) -> Meta:
    """CEL rules for one field, each with the sentence that refuses. A struct keeps its own in `RULES`."""
    return Meta(extra_json_schema=validations(checks))


def keyed(key: str) -> Meta:
    """A list whose items are told apart by one field, so that several writers can each own theirs."""
    return Meta(extra_json_schema={"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": [key]})


def validations(checks: Iterable[Rule]) -> dict[str, Any]:
    return {"x-kubernetes-validations": [{"rule": rule, "message": text} for rule, text in checks]}
