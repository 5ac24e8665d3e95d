"""The demo of `make demo`: the systems together on one machine.

Uses the app and the client of each system. Contains no rule and no part of a system.
"""
