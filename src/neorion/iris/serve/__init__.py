"""Endpoints of the controller for clients, administrators and workers, and the permissions of each caller.

Endpoints translate and check requests. `controllers` apply them.
"""
