"""Endpoints of the controller for clients, administrators and workers, and the permissions of each caller.

Translates and checks. What follows from a request belongs to `controllers`.
"""
