"""Code of a new process, before and around the user's function.

None of it runs in the worker or in the fork server's loop.
"""
