"""The controller's program.

A door only. No logic.
"""
