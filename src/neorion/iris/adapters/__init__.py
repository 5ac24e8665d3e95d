"""What iris needs from outside, one folder for each port: `runtimes` run tasks, `platforms` bring machines.

An adapter touches one foreign thing and keeps its port's contract; nothing is decided here.
"""
