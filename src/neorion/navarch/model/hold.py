"""Why something is not done now, in one typed reason: the same in the command line, the RPC, the history and the metrics."""

from dataclasses import dataclass
from enum import StrEnum

from neorion.keel.base import Instant


class HoldReason(StrEnum):
    """Reason why a repair or a purchase waits."""

    BUDGET = "budget"
    BUDGET_RATE = "budget_rate"
    SECOND_WITNESS = "second_witness"
    MASS_SILENCE = "mass_silence"
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

    code: HoldReason
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
    HoldReason.BUDGET: "{have} of at most {most} nodes are out of service already ({detail})",
    HoldReason.BUDGET_RATE: "{have} of at most {most} repairs were begun already ({detail})",
    HoldReason.COMMON_CAUSE: "{have} of {most} nodes report {detail} at the same time, which looks like one cause",
    HoldReason.SECOND_WITNESS: "Its agent is silent, and {detail}",
    HoldReason.MASS_SILENCE: "{have} of {most} agents fell silent together, which looks like the network between them and here",
    HoldReason.APPROVAL: "It waits for a person to approve: {detail}",
    HoldReason.AUTO_REPLACE_OFF: "The pool does not replace by itself (auto_replace is false)",
    HoldReason.PAUSED: "The pool is paused: {detail}",
    HoldReason.HELD_BY_OPERATOR: "An operator keeps the node as it is: {detail}",
    HoldReason.COOL_DOWN: "The node was treated a short while ago",
    HoldReason.ATTEMPTS: "The node was treated {have} times already, and {most} is the most",
    HoldReason.BREAKER: "The last {have} new machines of the pool did not come up",
    HoldReason.BACKING_OFF: "Every place of the pool refused lately: {detail}",
    HoldReason.TOO_DEAR: "No place is within the pool's highest price: {detail}",
    HoldReason.PURCHASES: "{have} of at most {most} machines were bought within the last hour",
    HoldReason.SPEND: "The pool spends {detail}",
    HoldReason.POOL_MAX: "The pool has {have} of at most {most} nodes",
}

_HINTS = {
    HoldReason.SECOND_WITNESS: "navarch node approve {subject}",
    HoldReason.MASS_SILENCE: "navarch pool release {pool}",
    HoldReason.APPROVAL: "navarch node approve {subject}",
    HoldReason.AUTO_REPLACE_OFF: "navarch node replace {subject}",
    HoldReason.PAUSED: "navarch pool resume {pool}",
    HoldReason.HELD_BY_OPERATOR: "navarch node uncordon {subject}",
    HoldReason.BACKING_OFF: "it is tried again by itself",
    HoldReason.BREAKER: "one is tried at a time; the first that comes up clears it",
    HoldReason.ATTEMPTS: "navarch node approve {subject}",
}
