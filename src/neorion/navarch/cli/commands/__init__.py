"""The commands of `navarch`, one module per noun.

A module declares arguments and help; the work is imported when a command runs.
"""
