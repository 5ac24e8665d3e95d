"""Names for jobs that were given none."""

import re

from neorion.keel.clock import Ids

_CHANCE_CHARS = 8


def made_name(stem: str, ids: Ids) -> str:
    """What it is about, and enough chance to be alone with it: letters and digits, because a name ends with one."""
    told = re.sub(r"[^A-Za-z0-9]+", "-", stem).strip("-")[:40] or "job"
    # A secret is some forty characters, most of them letters and digits.
    chance = "".join(filter(str.isalnum, ids.secret()))[:_CHANCE_CHARS].lower()
    return f"{told}-{chance}"
