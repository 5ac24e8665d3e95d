"""Judges of health events: in a process of its own with limits, or inside this one for simulations.

Both evaluate `decide.policy`; here stand only the walls around it. A rule that takes too long or too much is the rule's
failure, never the control plane's.
"""

from neorion.navarch.adapters.policy_engine.inline import InlinePolicyEngine
from neorion.navarch.adapters.policy_engine.subprocess_engine import SubprocessPolicyEngine

__all__ = ["InlinePolicyEngine", "SubprocessPolicyEngine"]
