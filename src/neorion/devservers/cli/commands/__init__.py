"""The commands of `devctl`, one module per noun.

A module declares arguments and help; `*_impl` modules do the work and load when a command runs.
"""
