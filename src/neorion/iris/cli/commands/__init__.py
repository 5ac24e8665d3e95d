"""Commands of `iris`, one module per noun.

A module declares arguments and help. `*_impl` modules implement the commands and are imported when a command runs.
"""
