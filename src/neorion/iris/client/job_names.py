"""Job names (check and generate), and sizes in readable units."""

import hashlib
import re
from typing import Final

from neorion.keel.base import Invalid
from neorion.keel.clock import Ids

# Jobs or tasks in one response of the controller.
PAGE: Final = 500
_RANDOM_CHARS = 8


def check_name(name: object) -> None:
    """Refuses a name that is not text. The controller checks its characters."""
    if not isinstance(name, str):
        raise Invalid(
            "iris.name",
            f"{name!r:.80} is not a valid job name.",
            hint='Give the name as text: submit(work, "train").',
        )


def generate_job_name(stem: str, ids: Ids, key: str = "") -> str:
    """Generates a name from a stem and random letters and digits.

    With a key the suffix is its hash, so that the same key always gives the same name.
    """
    readable = re.sub(r"[^A-Za-z0-9]+", "-", stem).strip("-")[:40] or "job"
    # A secret has about forty characters, most of them letters and digits.
    secret = hashlib.sha256(key.encode()).hexdigest() if key else ids.secret()
    return f"{readable}-{''.join(filter(str.isalnum, secret))[:_RANDOM_CHARS].lower()}"


def size(count: int) -> str:
    for unit, suffix in ((2**40, "Ti"), (2**30, "Gi"), (2**20, "Mi"), (2**10, "Ki")):
        if count >= unit:
            return f"{count / unit:.3g}{suffix}"
    return f"{count}B"
