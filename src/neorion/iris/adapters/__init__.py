"""Where iris meets the world: the cluster file, platforms, blob stores, runtimes.

Each adapter touches one foreign thing behind a port of `ports.py`. Nothing here decides what should happen.
"""
