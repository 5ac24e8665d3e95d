"""Whole fleets under virtual time: the real control plane, fake clouds, a crowd of agents, and what goes wrong.

Here stand the fleet, its troubles, the laws that must hold in every run, and what is measured in it. What navarch decides
and does stands in its own rooms, and is the same here as anywhere.
"""
