"""What the definitions say to the API server, beyond what its refusals show."""

from collections.abc import Iterator
from typing import Any

import pytest

from neorion.devservers.model import DEV_SERVER, DEV_SERVER_FLAVOR
from neorion.keel.kube.schema import CustomResource

# Patterns with a beginning and an end, and no repetition without one.
_BOUNDED = ("enum", "maxLength", "format")


def _unbounded(schema: dict[str, Any], path: str) -> Iterator[str]:
    kind = schema.get("type")
    if kind == "string" and not any(word in schema for word in _BOUNDED):
        pattern = schema.get("pattern", "")
        if not pattern or any(sign in pattern for sign in "*+"):
            yield path
    if kind == "array":
        if "maxItems" not in schema:
            yield path
        yield from _unbounded(schema["items"], f"{path}[]")
    if values := schema.get("additionalProperties"):
        if "maxProperties" not in schema:
            yield path
        yield from _unbounded(values, f"{path}{{}}")
    for name, inner in schema.get("properties", {}).items():
        yield from _unbounded(inner, f"{path}.{name}")


@pytest.mark.parametrize("resource", [DEV_SERVER, DEV_SERVER_FLAVOR], ids=lambda one: one.kind)
def test_nothing_that_a_user_writes_can_be_of_any_size(resource: CustomResource):
    schema = resource.manifest()["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]
    assert list(_unbounded(schema["spec"], "spec")) == []


@pytest.mark.parametrize("resource", [DEV_SERVER, DEV_SERVER_FLAVOR], ids=lambda one: one.kind)
def test_kubectl_tells_the_age_only_of_what_has_been(resource: CustomResource):
    """Of a date that is still to come it says <invalid>."""
    dates = [one.path for one in resource.columns if one.type == "date"]
    assert dates == [".metadata.creationTimestamp"]
