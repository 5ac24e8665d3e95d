import json
import re
from collections.abc import Callable
from enum import StrEnum
from typing import Annotated, Any, Literal

import pytest
import yaml
from pydantic import Field

from neorion.keel.base import Duration
from neorion.keel.config import (
    DurationField,
    InvalidConfig,
    Model,
    NameField,
    QuantityField,
    SecretValue,
    json_schema,
    loads,
)


class Size(StrEnum):
    SMALL = "small"
    LARGE = "large"


class Reactive(Model):
    type: Literal["reactive"]
    threshold: int = Field(default=80, ge=0, le=100)


class Queue(Model):
    type: Literal["queue"]


class Pool(Model):
    name: NameField
    wait: DurationField = Duration.of(minutes=5)
    ram: QuantityField | None = None
    size: Size = Size.SMALL
    active: bool = True
    scaler: Annotated[Reactive | Queue, Field(discriminator="type")] | None = None


class Fleet(Model):
    pools: tuple[Pool, ...] = ()
    token: SecretValue | None = None
    labels: dict[str, str] = Field(default_factory=dict)


SCHEMA = json_schema(Fleet)
TYPES: dict[str, Callable[[Any], bool]] = {
    "object": lambda value: isinstance(value, dict),
    "array": lambda value: isinstance(value, list),
    "string": lambda value: isinstance(value, str),
    "boolean": lambda value: isinstance(value, bool),
    "integer": lambda value: isinstance(value, int) and not isinstance(value, bool),
    "number": lambda value: isinstance(value, int | float) and not isinstance(value, bool),
    "null": lambda value: value is None,
}


def accepts(schema: Any, value: Any) -> bool:
    """The words of JSON schema that ours uses, as an editor reads them."""
    if schema is True:
        return True
    if "$ref" in schema:
        return accepts(SCHEMA["$defs"][schema["$ref"].removeprefix("#/$defs/")], value)
    checks = [
        any(accepts(each, value) for each in schema.get("anyOf", [True])),
        sum(accepts(each, value) for each in schema["oneOf"]) == 1 if "oneOf" in schema else True,
        TYPES[schema["type"]](value) if "type" in schema else True,
        value in schema["enum"] if "enum" in schema else True,
        value == schema["const"] if "const" in schema else True,
        not isinstance(value, str) or re.search(schema.get("pattern", ""), value) is not None,
        not isinstance(value, int | float)
        or schema.get("minimum", value) <= value <= schema.get("maximum", value),
    ]
    if isinstance(value, list):
        checks += [accepts(schema.get("items", True), each) for each in value]
    if isinstance(value, dict):
        known, others = schema.get("properties", {}), schema.get("additionalProperties", True)
        checks += [
            others is not False and accepts(others, each) for key, each in value.items() if key not in known
        ]
        checks += [accepts(known[key], each) for key, each in value.items() if key in known]
        checks += [key in value for key in schema.get("required", [])]
        checks += [len(value) >= schema.get("minProperties", 0)]
    return all(checks)


ENV = {"N": "a", "B": "true", "D": "5m", "I": "7", "S": "large", "T": "queue"}
GOOD = [
    "{}",
    "pools: [{ name: a, wait: 2h30m, ram: 2048GB, size: large, active: false }]",
    "pools: [{ name: a, wait: 1.5, ram: 4 }, { name: b, wait: { milliseconds: 5 }, ram: 512Mi }]",
    "pools: [{ name: a, ram: null, scaler: { type: reactive, threshold: 5 } }]",
    "pools: [{ name: 'pool-${N}', active: '${B}', wait: '${D}', ram: '${I}', size: '${S}' }]",
    "pools: [{ name: a, scaler: { type: reactive, threshold: '${I}' } }]",
    "token: ${N}",
    "labels: { anything: goes }",
]
BAD = [
    "poolz: []",
    "pools: [{}]",
    "pools: [{ name: Big_Name }]",
    "pools: [{ name: a, wait: soon }]",
    "pools: [{ name: a, wait: -1 }]",
    "pools: [{ name: a, wait: { fortnights: 1 } }]",
    "pools: [{ name: a, wait: {} }]",
    "pools: [{ name: a, ram: much }]",
    "pools: [{ name: a, size: medium }]",
    "pools: [{ name: a, active: 1 }]",
    "pools: [{ name: a, scaler: { type: reactive, threshold: 500 } }]",
    "pools: [{ name: a, scaler: { type: other } }]",
    "labels: { anything: 5 }",
    "token: 5",
]


@pytest.mark.parametrize("text", GOOD)
def test_what_loads_is_right_in_the_editor(text: str):
    loads(text, Fleet, ENV)
    assert accepts(SCHEMA, yaml.safe_load(text))


@pytest.mark.parametrize("text", BAD)
def test_what_the_editor_marks_is_refused(text: str):
    assert not accepts(SCHEMA, yaml.safe_load(text))
    with pytest.raises(InvalidConfig):
        loads(text, Fleet, ENV)


def test_the_schema_is_plain_json_with_a_dialect_and_words_for_units():
    assert json.loads(json.dumps(SCHEMA)) == SCHEMA
    assert SCHEMA["$schema"].startswith("https://json-schema.org/")
    wait = SCHEMA["$defs"]["Pool"]["properties"]["wait"]
    assert "2h30m" in wait["description"]
    assert wait["default"] == "5m"
    assert SCHEMA["additionalProperties"] is False


def test_the_line_that_names_the_schema_is_a_comment():
    assert loads("# yaml-language-server: $schema=fleet.json\ntoken: x\n", Fleet, {}).token == SecretValue(
        "x"
    )
