"""A value whose repr hides it; `reveal` returns the text."""

from hmac import compare_digest
from typing import Final

from pydantic import GetCoreSchemaHandler, GetJsonSchemaHandler
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema, core_schema

MASK: Final = "(secret)"


class SecretValue:
    """A text that no repr, log line, dump or message shows. `reveal` is the only way to it."""

    __slots__ = ("_text",)

    def __init__(self, text: str) -> None:
        self._text = text

    def reveal(self) -> str:
        return self._text

    def __repr__(self) -> str:
        return f"Secret{MASK}"

    def __str__(self) -> str:
        return MASK

    def __format__(self, form: str) -> str:
        return format(MASK, form)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, SecretValue) and compare_digest(self._text.encode(), other._text.encode())

    def __hash__(self) -> int:
        return hash((SecretValue, self._text))

    @classmethod
    def __get_pydantic_core_schema__(cls, source: object, handler: GetCoreSchemaHandler) -> CoreSchema:
        del source, handler
        text = core_schema.no_info_after_validator_function(cls, core_schema.str_schema(strict=True))
        return core_schema.json_or_python_schema(
            json_schema=text,
            python_schema=core_schema.union_schema([core_schema.is_instance_schema(cls), text]),
            serialization=core_schema.to_string_ser_schema(when_used="json"),
        )

    @classmethod
    def __get_pydantic_json_schema__(
        cls, schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> JsonSchemaValue:
        del schema, handler
        return {
            "type": "string",
            "description": "A secret: best a reference, ${NAME} or ${file:path}, to keep it out of this file.",
            "writeOnly": True,
        }
