"""Names of jobs: which are valid, and new ones; and sizes as people read them."""

import hashlib
import re
from typing import Final

from neorion.keel.base import Invalid
from neorion.keel.clock import Ids

# As many jobs or tasks as one answer of the controller holds.
PAGE: Final = 500
_CHANCE_CHARS = 8


def check_name(name: object) -> None:
    """Python takes anything for a name; what may stand in one, the controller says."""
    if not isinstance(name, str):
        raise Invalid(
            "iris.name", f"{name!r:.80} is no job name.", hint='Give the name as text: submit(work, "train").'
        )


def generate_job_name(stem: str, ids: Ids, key: str = "") -> str:
    """What it is about, and enough chance to be alone with it: letters and digits, because a name ends with one.

    With a key that is not left to chance: the same key is the same job, and has the same name.
    """
    told = re.sub(r"[^A-Za-z0-9]+", "-", stem).strip("-")[:40] or "job"
    # A secret is some forty characters, most of them letters and digits.
    secret = hashlib.sha256(key.encode()).hexdigest() if key else ids.secret()
    return f"{told}-{''.join(filter(str.isalnum, secret))[:_CHANCE_CHARS].lower()}"


def size(count: int) -> str:
    for unit, suffix in ((2**40, "Ti"), (2**30, "Gi"), (2**20, "Mi"), (2**10, "Ki")):
        if count >= unit:
            return f"{count / unit:.3g}{suffix}"
    return f"{count}B"
