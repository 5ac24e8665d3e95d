"""Setup commands: templates with a few variables, each of which goes into a shell as one word."""

import re
import shlex
from collections.abc import Mapping
from typing import Final

# As documented; `Token` lets one agent join, as this node alone.
VARIABLES: Final = ("ControlPlane", "InstanceType", "NodeID", "Pool", "Provider", "Region", "Token")

_PLACE: Final = re.compile(r"\{\{\s*\.([A-Za-z_][A-Za-z0-9_]*)\s*\}\}")


def variables_in(template: str) -> list[str]:
    return _PLACE.findall(template)


def filled(template: str, values: Mapping[str, str]) -> str:
    """Fills in the template. Values are quoted for the shell, and every variable of the template must have one."""
    return _PLACE.sub(lambda found: shlex.quote(values[found[1]]), template)
