"""Doubles of what iris needs from outside, for its own tests and for those who build on it.

Each passes the contract suite of its port. Nothing here may be used by a running system.
"""
