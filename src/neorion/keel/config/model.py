"""Base class and field types of configuration models: strict, with the units of `keel.base`.

class Scaling(Model):
    max_nodes: int
    cooldown: DurationField = Duration.of(minutes=5)
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Annotated

from pydantic import AfterValidator, BaseModel, ConfigDict, PlainSerializer, PlainValidator, WithJsonSchema

from neorion.keel.base import NAME_MAX, Duration, Quantity, is_name
from neorion.keel.config.document import Steps

_DURATION_TEXT = r"^([0-9]+(\.[0-9]+)?(ns|us|ms|s|m|h|d|w))+$|^[0-9]+(\.[0-9]+)?$"
_QUANTITY_TEXT = r"^([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+|([numkKMGTPE]|[KMGTPE]i)?B?)$"
# A file may hold a reference instead of any value; editors learn the form from the schema.
REFERENCE = {"type": "string", "pattern": r"\$\{[^{}]+\}", "description": "A reference: ${NAME}."}
_TIME_UNITS = ("nanoseconds", "microseconds", "milliseconds", "seconds", "minutes", "hours", "days")


@dataclass(frozen=True, slots=True)
class Problem:
    """A mistake that a model finds in itself: `steps` leads from the model to the value."""

    steps: Steps
    sentence: str
    hint: str = ""


class Model(BaseModel):
    """A mapping in a file: keys are known, values have the declared types, and instances are immutable."""

    model_config = ConfigDict(
        strict=True, extra="forbid", frozen=True, allow_inf_nan=False, hide_input_in_errors=True
    )

    def problems(self) -> Iterable[Problem]:
        """Mistakes that no single field can detect: names that do not exist, limits that contradict each other."""
        return ()


def _name(text: str) -> str:
    if not is_name(text):
        raise ValueError(
            f'"{text[:40]}" is not a valid name; use lower-case letters, digits and dashes, '
            f"at most {NAME_MAX}, with a letter or digit at both ends"
        )
    return text


DurationField = Annotated[
    Duration,
    PlainValidator(Duration.parse),
    PlainSerializer(str),
    WithJsonSchema(
        {
            "description": 'A duration: "2h30m", "1d", "1.5s", seconds as a number, or { milliseconds: 1800000 }.',
            "anyOf": [
                {"type": "string", "pattern": _DURATION_TEXT},
                {"type": "number", "minimum": 0},
                {
                    "type": "object",
                    "properties": {unit: {"type": "number", "minimum": 0} for unit in _TIME_UNITS},
                    "additionalProperties": False,
                    "minProperties": 1,
                },
                REFERENCE,
            ],
        }
    ),
]

QuantityField = Annotated[
    Quantity,
    PlainValidator(Quantity.parse),
    PlainSerializer(str),
    WithJsonSchema(
        {
            "description": 'An amount: 4, "500m", "512Mi" (2^20 bytes each), "2048GB" (10^9 bytes each).',
            "anyOf": [
                {"type": "string", "pattern": _QUANTITY_TEXT},
                {"type": "number", "minimum": 0},
                REFERENCE,
            ],
        }
    ),
]

NameField = Annotated[
    str,
    AfterValidator(_name),
    WithJsonSchema(
        {
            "description": f"A name: lower-case letters, digits and dashes, at most {NAME_MAX}.",
            "anyOf": [{"type": "string", "pattern": "^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$"}, REFERENCE],
        }
    ),
]
