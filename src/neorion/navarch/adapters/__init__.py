"""Adapters of navarch: its configuration file, the policy engine, schedulers of work, and probes of machines.

Each folder holds one external thing, behind a port. Rules of navarch's own are in `decide`.
"""
