"""Attempts in containers: one container for each attempt, with a runner in it that talks to the worker.

An engine makes, watches and removes containers. What an attempt is and how it ends is the same for all engines.
"""
