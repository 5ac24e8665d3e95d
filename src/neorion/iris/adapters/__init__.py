"""Where iris meets the world: runtimes that run tasks, platforms that bring machines, blob stores, the cluster file.

Each adapter touches one foreign thing and keeps its port's contract. Nothing here decides what should happen.
"""
