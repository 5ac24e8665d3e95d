"""Options and arguments that the commands share. Cheap to import: every help passes through here."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import wraps
from pathlib import Path
from typing import Any

import click

Callback = Callable[..., int | None]


@dataclass(frozen=True, slots=True)
class Where:
    """Which cluster and which namespace the user named."""

    namespace: str = ""
    context: str = ""
    kubeconfig: Path | None = None


def where_options(function: Callback) -> Callback:
    """The three options, given to the command as one value, `where`."""

    @click.option(
        "-n",
        "--namespace",
        default="",
        show_default=False,
        help="Where the servers live; the kubeconfig's own, or dev-USER.",
    )
    @cluster_options
    @wraps(function)
    def gathered(
        *args: Any,  # noqa: ANN401 -- click's own
        namespace: str,
        where: Where,
        **kwargs: Any,  # noqa: ANN401 -- click's own
    ) -> int | None:
        return function(*args, where=replace(where, namespace=namespace), **kwargs)

    return gathered


def cluster_options(function: Callback) -> Callback:
    """For commands that concern a whole cluster: `where` without a namespace."""

    @click.option("--context", default="", show_default=False, help="The context in the kubeconfig.")
    @click.option(
        "--kubeconfig",
        type=click.Path(path_type=Path),
        metavar="FILE",
        help="Whose cluster; as for kubectl if none is given.",
    )
    @wraps(function)
    def gathered(
        *args: Any,  # noqa: ANN401 -- click's own
        context: str,
        kubeconfig: Path | None,
        **kwargs: Any,  # noqa: ANN401 -- click's own
    ) -> int | None:
        return function(*args, where=Where("", context, kubeconfig), **kwargs)

    return gathered


name_argument = click.argument("name", metavar="NAME")
timeout_option = click.option(
    "--timeout", default="15m", metavar="TIME", help="How long to wait, as in 30s or 10m."
)
wait_option = click.option(
    "--wait/--no-wait", default=True, allow_from_autoenv=False, help="Wait until it has happened."
)
