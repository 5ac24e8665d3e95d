"""The commands of `drydock`, one module per noun.

A module declares arguments and help; the work is imported when a command runs.
"""
