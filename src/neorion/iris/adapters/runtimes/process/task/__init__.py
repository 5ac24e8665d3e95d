"""The task side of a fork: what runs in the new process before and around the user's function.

Nothing here runs in the worker or in the fork server's own loop.
"""
