"""The forms a person may write in a DevServer: names, sizes, lengths of time. The API server checks each before we see it."""

from datetime import datetime, timedelta
from typing import Annotated

from msgspec import Meta

from neorion.keel.base import Duration
from neorion.keel.kube.validation import rules

GROUP = "devservers.io"
VERSION = "v1"
# A server's Service is named after it with "-ssh" behind, and has room for 63 letters.
NAME_MAX = 59
# A StatefulSet labels its Pods with its name and a hash of eleven letters behind, of 63 at most.
DISTRIBUTED_NAME_MAX = 52
# Kubernetes' own grammar of names that become host names.
Name = Annotated[str, Meta(min_length=1, max_length=63, pattern=r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$")]
# Volume claims and flavors may carry dots: `p3.2xlarge`.
DottedName = Annotated[
    str,
    Meta(
        min_length=1,
        max_length=253,
        pattern=r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$",
    ),
]
# An amount such as 100Gi. Whole numbers with a binary or decimal suffix: what people write for volumes.
Size = Annotated[
    str,
    Meta(min_length=1, max_length=20),
    rules(
        (
            "self.matches('^[1-9][0-9]*(Ki|Mi|Gi|Ti|Pi|k|M|G|T|P)?$')",
            "write a size as a whole number with its unit, such as 100Gi",
        )
    ),
]
# A length of time such as 2h30m. Longest term first, so that nothing between the terms is ignored.
Span = Annotated[
    str,
    Meta(min_length=2, max_length=20),
    rules(
        (
            "self.matches('^([0-9]{1,4}w)?([0-9]{1,4}d)?([0-9]{1,5}h)?([0-9]{1,6}m)?([0-9]{1,8}s)?$')",
            "write a length of time such as 30m, 2h30m or 1d",
        )
    ),
]
# A point in time such as 2026-01-15T18:00:00Z. By itself the API server also takes times that no calendar has, such as one
# that is 99 hours off or has words behind it; a single one that cannot be read would keep the operator from reading any.
_MOMENT = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:]{8}(\.[0-9]+)?(Z|[+-]([01][0-9]|2[0-3]):[0-5][0-9])$"
Moment = Annotated[
    datetime,
    Meta(tz=True, extra_json_schema={"maxLength": 64, "pattern": _MOMENT}),
    rules(
        (
            "self >= timestamp('2000-01-01T00:00:00Z') && self < timestamp('2200-01-01T00:00:00Z')",
            "write a time between the years 2000 and 2200; what shall never be is left out",
        )
    ),
]
# Kubernetes writes amounts of resources as numbers or texts: `cpu: 8`, `memory: 32Gi`.
Amount = int | str
TEXT_MAX = 1024
Text = Annotated[str, Meta(max_length=TEXT_MAX)]


def span(text: Span) -> timedelta:
    return timedelta(seconds=Duration.parse(text).seconds)
