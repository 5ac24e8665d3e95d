"""The command line of navarch, `navarch` or `neorion navarch`: the fleet, seen and steered.

Speaks to a control plane through the client alone. What a command declares stands in the module of its noun; what it
does is imported when it is called.
"""

import os
from typing import Final

from neorion.keel.cli import App, run

_FLEET: Final = "Fleet"
_WORDS: Final = "Words"
_PLANE: Final = "Control plane"
_SHELL: Final = "Your shell"

app = App(
    "navarch",
    help="The fleet: pools, nodes, their health and their repair.",
    env_prefix="NAVARCH",
    distribution="neorion",
)
app.mount(
    "pool", "neorion.navarch.cli.commands.pool:pool", help="See pools and change their size.", heading=_FLEET
)
app.mount(
    "node",
    "neorion.navarch.cli.commands.node:node",
    help="See nodes and take them in and out.",
    heading=_FLEET,
)
app.mount(
    "explain",
    "neorion.navarch.cli.commands.explain:explain",
    help="Say what a node or a pool does, why, and what comes next.",
    heading=_WORDS,
)
app.mount(
    "plan", "neorion.navarch.cli.commands.explain:plan", help="Say what would be done now.", heading=_WORDS
)
app.mount(
    "doctor",
    "neorion.navarch.cli.commands.explain:doctor",
    help="Look for what should not be.",
    heading=_WORDS,
)
app.mount(
    "watch",
    "neorion.navarch.cli.commands.watch:watch",
    help="Tell what happens in the fleet, until interrupted.",
    heading=_WORDS,
)
app.mount(
    "policy",
    "neorion.navarch.cli.commands.policy:policy",
    help="Try a health policy before it is in force.",
    heading=_WORDS,
)
app.mount(
    "validate",
    "neorion.navarch.cli.commands.validate:validate",
    help="Check a configuration file.",
    heading=_PLANE,
)
app.mount(
    "serve",
    "neorion.navarch.app.serve_command:serve",
    help="Run the control plane until it is told to stop.",
    heading=_PLANE,
)
app.mount(
    "simulate",
    "neorion.navarch.app.simulate_command:simulate",
    help="Run a fleet under virtual time and say how it fared.",
    heading=_PLANE,
)
app.mount(
    "agent",
    "neorion.navarch.app.agent_command:agent",
    help="Watch this machine for a control plane.",
    heading=_PLANE,
)
app.mount(
    "completion",
    "neorion.keel.cli.kit.completion:completion",
    help="Print the completion script for bash, zsh or fish.",
    heading=_SHELL,
)

__all__ = ["app", "main"]


def main() -> None:
    # At once: the RPC client's threads may be on their way into Python, and an interpreter that winds itself down under
    # them aborts, and the exit code with it.
    os._exit(run(app))
