"""A JSON schema for editors, from the same model that reads the file.

A first line `# yaml-language-server: $schema=<file>` gives completion and checks while writing.
"""

from typing import Any, Final

from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue
from pydantic_core import core_schema

from neorion.keel.base import Duration, Quantity
from neorion.keel.config.model import REFERENCE, Model
from neorion.keel.config.secret import SecretValue

_DIALECT: Final = "https://json-schema.org/draft/2020-12/schema"


def json_schema(model: type[Model]) -> dict[str, Any]:
    schema = model.model_json_schema(by_alias=True, schema_generator=_WithReferences)
    return {"$schema": _DIALECT, **schema}


def _or_reference(schema: JsonSchemaValue) -> JsonSchemaValue:
    return {"anyOf": [schema, dict(REFERENCE)]}


class _WithReferences(GenerateJsonSchema):
    """Allows a reference wherever the file may hold one instead of the value."""

    def encode_default(self, dft: object) -> object:
        return str(dft) if isinstance(dft, Duration | Quantity | SecretValue) else super().encode_default(dft)

    def int_schema(self, schema: core_schema.IntSchema) -> JsonSchemaValue:
        return _or_reference(super().int_schema(schema))

    def float_schema(self, schema: core_schema.FloatSchema) -> JsonSchemaValue:
        return _or_reference(super().float_schema(schema))

    def bool_schema(self, schema: core_schema.BoolSchema) -> JsonSchemaValue:
        return _or_reference(super().bool_schema(schema))

    def literal_schema(self, schema: core_schema.LiteralSchema) -> JsonSchemaValue:
        return _or_reference(super().literal_schema(schema))

    def enum_schema(self, schema: core_schema.EnumSchema) -> JsonSchemaValue:
        return _or_reference(super().enum_schema(schema))

    def str_schema(self, schema: core_schema.StringSchema) -> JsonSchemaValue:
        plain = super().str_schema(schema)
        return plain if plain == {"type": "string"} else _or_reference(plain)
