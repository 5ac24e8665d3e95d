"""The events of a server that runs: what became wrong, what is ready, and what ends soon."""

from neorion.devservers.decide.decision import EventNote, Observed
from neorion.devservers.decide.interruption import is_interrupted
from neorion.devservers.decide.notifications import WHY
from neorion.devservers.decide.ranks import lost_ranks
from neorion.devservers.model import Alert, Deadline, DevServerStatus, Phase


def event_notes(
    seen: Observed, status: DevServerStatus, alert: Alert | None, over: Deadline | None
) -> tuple[EventNote, ...]:
    before = seen.server.status
    known = {one.type: (one.reason, one.status) for one in before.conditions}
    told = [
        EventNote(one.reason, one.message, warning=True)
        for one in status.conditions
        if one.status == "False" and one.message and known.get(one.type) != (one.reason, one.status)
    ]
    if status.phase is Phase.RUNNING and before.phase is not Phase.RUNNING:
        told.append(EventNote("Ready", "The server is ready."))
    for rank in lost_ranks(before, status):
        lost = f"Rank {rank} is no longer ready; another Pod takes its place. Processes of the other ranks go on."
        told.append(EventNote("RankLost", lost, warning=True))
    if is_interrupted(seen):
        lost = "The spot machine is taken back. The server stops, and its home is kept; start it again at any time."
        told.append(EventNote("Interrupted", lost, warning=True))
    if alert is not None:
        told.append(EventNote("StopsSoon", alert.text, warning=True))
    if over is not None:
        told.append(EventNote("Stopping", f"The server stops: {WHY[over.reason]}."))
    if status.last_oom != before.last_oom:
        told.append(
            EventNote(
                "OutOfMemory",
                "The server ran out of memory and was restarted; choose a larger flavor.",
                warning=True,
            )
        )
    return tuple(told)
