"""Iris put together: from parts to running processes, a controller or a worker each.

Chooses and connects. Nothing is decided and nothing is done here that a part could do.
"""
