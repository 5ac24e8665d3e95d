"""The worker's program.

A door only. No logic.
"""
