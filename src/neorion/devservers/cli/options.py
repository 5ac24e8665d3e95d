"""Options and arguments that the commands share. Cheap to import: every help passes through here."""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, Final, NamedTuple

import click

Callback = Callable[..., int | None]
# Of all parameters, those that name a flavor and no server.
_FLAVORS: Final = frozenset({"flavor", "short"})


class ClusterSelector(NamedTuple):
    """Which cluster and which namespace the user named."""

    namespace: str = ""
    context: str = ""
    kubeconfig: Path | None = None


def _collected(ctx: click.Context, param: click.Parameter, value: Any) -> None:  # noqa: ANN401 -- click's own
    """Put the value of one option into `where`, which the command gets instead of the options."""
    where: ClusterSelector = ctx.params.get("where", ClusterSelector())
    ctx.params["where"] = where._replace(**{str(param.name): value})


def cluster_options(function: Callback) -> Callback:
    """Adds the options that select a cluster, without a namespace."""
    context = click.option(
        "--context",
        default="",
        show_default=False,
        expose_value=False,
        callback=_collected,
        help="The context in the kubeconfig.",
    )
    kubeconfig = click.option(
        "--kubeconfig",
        type=click.Path(path_type=Path),
        metavar="FILE",
        expose_value=False,
        callback=_collected,
        help="Kubeconfig file; else kubectl's own.",
    )
    return context(kubeconfig(function))


def where_options(function: Callback) -> Callback:
    """The three options, given to the command as one value, `where`."""
    namespace = click.option(
        "-n",
        "--namespace",
        default="",
        show_default=False,
        expose_value=False,
        callback=_collected,
        help="Where the servers live; the kubeconfig's own, or dev-USER.",
    )
    return namespace(cluster_options(function))


def _completed(ctx: click.Context, param: click.Parameter, begun: str) -> list[str]:
    """The names of servers or flavors that a shell offers for what was typed so far."""
    from neorion.devservers.cli.session import completion_names  # noqa: PLC0415 -- only shells that complete ask

    where: ClusterSelector = ctx.params.get("where", ClusterSelector())
    flavors = param.name in _FLAVORS
    return [name for name in completion_names(where, flavors=flavors) if name.startswith(begun)]


name_argument = click.argument("name", metavar="NAME", shell_complete=_completed)
maybe_name_argument = click.argument("name", default="", metavar="[NAME]", shell_complete=_completed)
some_names_argument = partial(click.argument, "names", nargs=-1, shell_complete=_completed)
flavor_option = partial(click.option, "--flavor", metavar="FLAVOR", shell_complete=_completed)
flavor_argument = click.argument("short", default="", metavar="[FLAVOR]", shell_complete=_completed)
rank_option = click.option(
    "--rank",
    type=click.IntRange(min=0),
    allow_from_autoenv=False,
    metavar="N",
    help="The rank of a distributed server; the first if none.",
)
timeout_option = click.option(
    "--timeout", default="15m", metavar="TIME", help="Longest wait, as in 30s or 10m."
)
wait_option = click.option(
    "--wait/--no-wait", default=True, allow_from_autoenv=False, help="Wait until it has happened."
)
