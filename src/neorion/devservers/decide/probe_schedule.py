"""When to look into a server again: as late as its end, its warnings and a fair account of its use allow."""

from datetime import datetime, timedelta

from neorion.devservers.decide.decision import Observed
from neorion.devservers.decide.idle_detection import ActivityHistory
from neorion.devservers.decide.lifetime import idle_end, warnings
from neorion.devservers.decide.running import running
from neorion.devservers.model import Phase
from neorion.devservers.model.field_types import span

# Long enough that the probe itself is no use of CPU to speak of.
PROBE_INTERVAL_MIN = timedelta(seconds=15)
# A session that came and went between two looks is not seen, so they are not farther apart than people's pauses.
PROBE_INTERVAL_MAX = timedelta(minutes=10)


def next_probe(seen: Observed, sight: ActivityHistory | None, now: datetime) -> datetime | None:
    """Time of the next probe; None for a server that needs none."""
    server = seen.server
    watched = server.meta.deleted is None and server.spec.running and server.spec.lifecycle.auto_shutdown
    if not watched or seen.pod is None or server.status.phase is not Phase.RUNNING:
        return None
    if sight is None or sight.pod != seen.probed:
        return now
    if sight.look is None:
        return sight.taken + PROBE_INTERVAL_MIN
    if sight.misses:
        return sight.taken + min(PROBE_INTERVAL_MAX, PROBE_INTERVAL_MIN * 2 ** min(sight.misses, 10))
    known = running(seen, now, server.status.flavor)
    end = idle_end(known)
    if end is None:
        return sight.taken + PROBE_INTERVAL_MAX
    points = (end.time, *(end.time - span(before) for before in warnings(known, end)))
    soonest = min((point for point in points if point > sight.taken), default=sight.taken)
    return max(sight.taken + PROBE_INTERVAL_MIN, min(soonest, sight.taken + PROBE_INTERVAL_MAX))
