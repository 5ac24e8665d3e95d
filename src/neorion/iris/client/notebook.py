"""HTML view of a job for notebooks."""

from html import escape
from typing import Final

from neorion.iris.client.result import JobFailed
from neorion.iris.model.gen import iris_pb as pb

# Readable on white and on black, because notebooks have both backgrounds.
_COLOURS: Final = {
    "pending": "#b7791f",
    "running": "#2b6cb0",
    "succeeded": "#2f855a",
    "failed": "#c53030",
    "cancelled": "#718096",
}
_ORDER: Final = ("succeeded", "running", "pending", "failed", "cancelled")


def html(job: pb.Job) -> str:
    """Name, state, bar of task states, and pending reason or failure of a job."""
    colour = _COLOURS.get(job.state, "inherit")
    why = job.reason.sentence if job.reason else _end(job)
    counts = ", ".join(f"{job.tasks[state]} {state}" for state in _ORDER if job.tasks.get(state))
    return (
        '<div style="font-family: sans-serif; max-width: 40em; line-height: 1.5">'
        f'<b>{escape(job.name)}</b> <span style="color: {colour}">{escape(job.state)}</span>'
        f'<div style="display: flex; height: 6px; border-radius: 3px; overflow: hidden; margin: 4px 0">{_bar(job)}</div>'
        f'<span style="opacity: 0.8">{escape(counts)}</span>'
        + (f"<br><i>{escape(why)}</i>" if why else "")
        + "</div>"
    )


def _end(job: pb.Job) -> str:
    if job.state != "failed" or job.ending is None:
        return ""
    return job.ending.message or JobFailed(job, job.ending).sentence


def _bar(job: pb.Job) -> str:
    return "".join(
        f'<span style="flex: {job.tasks[state]}; background: {_COLOURS[state]}"></span>'
        for state in _ORDER
        if job.tasks.get(state)
    )
