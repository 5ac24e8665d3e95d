"""Development servers from outside: what `devctl` and Python programs ask of a cluster, and how they reach into servers.

`DevServer` is for programs; the rest is what both are made of. Nothing here writes to a terminal, and nothing does the
operator's work: it asks, and watches what becomes of it. Names load when first used: a list of servers needs few of them.
"""

from typing import TYPE_CHECKING

from neorion.devservers.client.progress import (
    ProgressStep,
    is_observed,
    is_ready,
    obstacle,
    placed_after,
    steps,
)
from neorion.devservers.model.tenancy import own_namespace
from neorion.keel.base import lazy_exports

if TYPE_CHECKING:
    from neorion.devservers.client.api import DevServerApi
    from neorion.devservers.client.async_client import AsyncDevServer, CreateArgs, KubeSelection
    from neorion.devservers.client.client import DevServer
    from neorion.devservers.client.create_request import CreateRequest, DistributedRequest
    from neorion.devservers.client.durations import parse_span, span_text
    from neorion.devservers.client.events import event_time
    from neorion.devservers.client.extend import Extension, extended
    from neorion.devservers.client.file_copy import SkippedEntry, copy_from, copy_to
    from neorion.devservers.client.flavor_change import FlavorChangePlan, plan_move
    from neorion.devservers.client.kube_context import KubeContext, resolve_context, user_name
    from neorion.devservers.client.pod_access import (
        CONTAINER,
        container,
        exec_run,
        exec_stream,
        pod_logs,
        port_forward,
    )
    from neorion.devservers.client.server_diagnosis import STOPS, Diagnosis, diagnose, stop_conditions
    from neorion.devservers.client.ssh import SshLogin, find_ssh_login, run_ssh
    from neorion.devservers.client.wait import (
        PATIENCE,
        Progress,
        until_stopped,
        wait_deleted,
        wait_ready,
    )

__all__ = [
    "CONTAINER",
    "PATIENCE",
    "STOPS",
    "AsyncDevServer",
    "CreateArgs",
    "CreateRequest",
    "DevServer",
    "DevServerApi",
    "Diagnosis",
    "DistributedRequest",
    "Extension",
    "FlavorChangePlan",
    "KubeContext",
    "KubeSelection",
    "Progress",
    "ProgressStep",
    "SkippedEntry",
    "SshLogin",
    "container",
    "copy_from",
    "copy_to",
    "diagnose",
    "event_time",
    "exec_run",
    "exec_stream",
    "extended",
    "find_ssh_login",
    "is_observed",
    "is_ready",
    "obstacle",
    "own_namespace",
    "parse_span",
    "placed_after",
    "plan_move",
    "pod_logs",
    "port_forward",
    "resolve_context",
    "run_ssh",
    "span_text",
    "steps",
    "stop_conditions",
    "until_stopped",
    "user_name",
    "wait_deleted",
    "wait_ready",
]

__getattr__ = lazy_exports(
    __name__,
    {
        "async_client": (
            "AsyncDevServer",
            "CreateArgs",
            "KubeSelection",
        ),
        "file_copy": (
            "SkippedEntry",
            "copy_from",
            "copy_to",
        ),
        "extend": (
            "Extension",
            "extended",
        ),
        "api": ("DevServerApi",),
        "events": ("event_time",),
        "wait": (
            "PATIENCE",
            "Progress",
            "wait_deleted",
            "wait_ready",
            "until_stopped",
        ),
        "pod_access": (
            "CONTAINER",
            "container",
            "port_forward",
            "pod_logs",
            "exec_stream",
            "exec_run",
        ),
        "flavor_change": (
            "FlavorChangePlan",
            "placed_after",
            "plan_move",
        ),
        "kube_context": (
            "KubeContext",
            "resolve_context",
            "user_name",
        ),
        "durations": (
            "parse_span",
            "span_text",
        ),
        "ssh": (
            "SshLogin",
            "find_ssh_login",
            "run_ssh",
        ),
        "client": ("DevServer",),
        "server_diagnosis": (
            "STOPS",
            "Diagnosis",
            "diagnose",
            "stop_conditions",
        ),
        "create_request": ("CreateRequest", "DistributedRequest"),
    },
)
