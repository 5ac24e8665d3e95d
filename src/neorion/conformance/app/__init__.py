"""Puts conformance together: the engine that runs checks against a cluster, and the commands that start it.

Holds no rule and no check.
"""
