"""Validation rules for the schema of a custom resource: rules in CEL, and lists with keys."""

from collections.abc import Iterable
from typing import Any

from msgspec import Meta

Rule = tuple[str, str]


def rules(*checks: Rule) -> Meta:
    """CEL rules for one field, each with its error message. A struct keeps its own in `RULES`."""
    return Meta(extra_json_schema=validations(checks))


def keyed(key: str) -> Meta:
    """A list whose items are identified by one field, so that several writers can each own some items."""
    return Meta(extra_json_schema={"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": [key]})


def validations(checks: Iterable[Rule]) -> dict[str, Any]:
    return {"x-kubernetes-validations": [{"rule": rule, "message": text} for rule, text in checks]}
