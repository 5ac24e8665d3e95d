"""Development servers from outside: what `devctl` and Python programs ask of a cluster, and how they reach into servers.

`DevServer` is for programs; the rest is what both are made of. Nothing here writes to a terminal, and nothing does the
operator's work: it asks, and watches what becomes of it. Names load when first used: a list of servers needs few of them.
"""

from typing import TYPE_CHECKING

from neorion.devservers.client.steps import Step, is_observed, is_ready, obstacle, steps
from neorion.devservers.model.users import own_namespace
from neorion.keel.base import late

if TYPE_CHECKING:
    from neorion.devservers.client.aio import AsyncDevServer, Wanted, Where
    from neorion.devservers.client.copying import LeftOut, copy_from, copy_to
    from neorion.devservers.client.extension import Extension, extended
    from neorion.devservers.client.fleet import Fleet, when
    from neorion.devservers.client.follow import (
        PATIENCE,
        Progress,
        until_gone,
        until_ready,
        until_stopped,
    )
    from neorion.devservers.client.inside import CONTAINER, container, forwarded, logs_of, open_in, run_in
    from neorion.devservers.client.move import Move, plan_move
    from neorion.devservers.client.place import Place, find_place, user_name
    from neorion.devservers.client.spans import parse_span, span_text
    from neorion.devservers.client.ssh import Way, find_way, run_ssh
    from neorion.devservers.client.sync import DevServer
    from neorion.devservers.client.why import STOPS, Diagnosis, diagnosis, ends
    from neorion.devservers.client.wish import Wish

__all__ = [
    "CONTAINER",
    "PATIENCE",
    "STOPS",
    "AsyncDevServer",
    "DevServer",
    "Diagnosis",
    "Extension",
    "Fleet",
    "LeftOut",
    "Move",
    "Place",
    "Progress",
    "Step",
    "Wanted",
    "Way",
    "Where",
    "Wish",
    "container",
    "copy_from",
    "copy_to",
    "diagnosis",
    "ends",
    "extended",
    "find_place",
    "find_way",
    "forwarded",
    "is_observed",
    "is_ready",
    "logs_of",
    "obstacle",
    "open_in",
    "own_namespace",
    "parse_span",
    "plan_move",
    "run_in",
    "run_ssh",
    "span_text",
    "steps",
    "until_gone",
    "until_ready",
    "until_stopped",
    "user_name",
    "when",
]

__getattr__ = late(
    __name__,
    {
        "aio": (
            "AsyncDevServer",
            "Wanted",
            "Where",
        ),
        "copying": (
            "LeftOut",
            "copy_from",
            "copy_to",
        ),
        "extension": (
            "Extension",
            "extended",
        ),
        "fleet": (
            "Fleet",
            "when",
        ),
        "follow": (
            "PATIENCE",
            "Progress",
            "until_gone",
            "until_ready",
            "until_stopped",
        ),
        "inside": (
            "CONTAINER",
            "container",
            "forwarded",
            "logs_of",
            "open_in",
            "run_in",
        ),
        "move": (
            "Move",
            "plan_move",
        ),
        "place": (
            "Place",
            "find_place",
            "user_name",
        ),
        "spans": (
            "parse_span",
            "span_text",
        ),
        "ssh": (
            "Way",
            "find_way",
            "run_ssh",
        ),
        "sync": ("DevServer",),
        "why": (
            "STOPS",
            "Diagnosis",
            "diagnosis",
            "ends",
        ),
        "wish": ("Wish",),
    },
)
