"""`completion bash`: the script that teaches a shell our commands."""

from typing import Final

import click
from click.shell_completion import ShellComplete, get_completion_class

from neorion.keel.base import Terminal
from neorion.keel.cli.app import Command
from neorion.keel.cli.kit.output import Output
from neorion.keel.cli.main import completion_variable
from neorion.keel.cli.shared_options import SuggestingChoice

_SHELLS: Final = ("bash", "zsh", "fish")


@click.command("completion", cls=Command)
@click.argument("shell", type=SuggestingChoice(_SHELLS))
def completion(out: Output, shell: str) -> None:
    """Print the completion script for bash, zsh or fish.

    For the start file of bash and zsh: eval "$(PROGRAM completion bash)", and of fish: PROGRAM completion fish | source
    """
    root = click.get_current_context().find_root()
    program = root.info_name or ""
    kind = get_completion_class(shell)
    if kind is None:
        raise Terminal(
            "cli.unknown_shell",
            f"This version of click does not know {shell}.",
            hint="Use bash, zsh or fish.",
        )
    script = kind(root.command, {}, program, completion_variable(program))
    # Calls the base class, because bash's own method would first start a bash to read its version.
    out.text(ShellComplete.source(script))
