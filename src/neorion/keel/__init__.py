"""The foundation: time, tasks, stores, RPC, configuration, telemetry, simulation.

Nothing here knows a noun of the trade: no GPU, no job, no node. Each room could be a library of its own.
"""
