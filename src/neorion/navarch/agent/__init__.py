"""The agent: one process on each machine that says that it lives, how its GPUs are, and what it saw, as soon as it sees it.

What it looks at stands behind the probe port. It decides nothing: it reports, and carries out what it is told.
"""

from neorion.navarch.agent.agent import Agent
from neorion.navarch.agent.identity import HostIdentity
from neorion.navarch.agent.state_dir import AgentState

__all__ = ["Agent", "AgentState", "HostIdentity"]
