"""What navarch uses of the world: its configuration file, a process that judges, schedulers of work, probes of machines.

One foreign thing in each folder, behind a port. No rule of navarch's own stands here.
"""
