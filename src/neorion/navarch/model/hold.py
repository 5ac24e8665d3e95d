"""Why something is not done now, in one typed reason: the same in the command line, the RPC, the history and the metrics."""

from dataclasses import dataclass
from enum import StrEnum

from neorion.keel.base import Instant


class HoldCode(StrEnum):
    """What stands in the way of a repair or a purchase."""

    BUDGET = "budget"
    BUDGET_RATE = "budget_rate"
    COMMON_CAUSE = "common_cause"
    APPROVAL = "approval"
    AUTO_REPLACE_OFF = "auto_replace_off"
    PAUSED = "paused"
    HELD_BY_OPERATOR = "held_by_operator"
    COOL_DOWN = "cool_down"
    ATTEMPTS = "attempts"
    BREAKER = "breaker"
    BACKING_OFF = "backing_off"
    TOO_DEAR = "too_dear"
    PURCHASES = "purchases"
    SPEND = "spend"
    POOL_MAX = "pool_max"


@dataclass(frozen=True, slots=True)
class Hold:
    """`subject` is the node or pool that waits, of `pool`; `have` of `most` is used; `detail` names what the code is about."""

    code: HoldCode
    subject: str
    have: int = 0
    most: int = 0
    detail: str = ""
    until: Instant | None = None
    pool: str = ""

    @property
    def sentence(self) -> str:
        detail = self.detail.removesuffix(".")
        text = _SENTENCES[self.code].format(have=self.have, most=self.most, detail=detail)
        return f"{text}, until {self.until} at the latest." if self.until else f"{text}."

    @property
    def hint(self) -> str:
        return _HINTS.get(self.code, "").format(subject=self.subject, pool=self.pool)


_SENTENCES = {
    HoldCode.BUDGET: "{have} of at most {most} nodes are out of service already ({detail})",
    HoldCode.BUDGET_RATE: "{have} of at most {most} repairs were begun already ({detail})",
    HoldCode.COMMON_CAUSE: "{have} of {most} nodes report {detail} at the same time, which looks like one cause",
    HoldCode.APPROVAL: "It waits for a person to approve: {detail}",
    HoldCode.AUTO_REPLACE_OFF: "The pool does not replace by itself (auto_replace is false)",
    HoldCode.PAUSED: "The pool is paused: {detail}",
    HoldCode.HELD_BY_OPERATOR: "An operator keeps the node as it is: {detail}",
    HoldCode.COOL_DOWN: "The node was treated a short while ago",
    HoldCode.ATTEMPTS: "The node was treated {have} times already, and {most} is the most",
    HoldCode.BREAKER: "The last {have} new machines of the pool did not come up",
    HoldCode.BACKING_OFF: "Every place of the pool refused lately: {detail}",
    HoldCode.TOO_DEAR: "No place is within the pool's highest price: {detail}",
    HoldCode.PURCHASES: "{have} of at most {most} machines were bought within the last hour",
    HoldCode.SPEND: "The pool spends {detail}",
    HoldCode.POOL_MAX: "The pool has {have} of at most {most} nodes",
}

_HINTS = {
    HoldCode.APPROVAL: "navarch node approve {subject}",
    HoldCode.AUTO_REPLACE_OFF: "navarch node replace {subject}",
    HoldCode.PAUSED: "navarch pool resume {pool}",
    HoldCode.HELD_BY_OPERATOR: "navarch node uncordon {subject}",
    HoldCode.BACKING_OFF: "it is tried again by itself",
    HoldCode.BREAKER: "one is tried at a time; the first that comes up clears it",
    HoldCode.ATTEMPTS: "navarch node approve {subject}",
}
