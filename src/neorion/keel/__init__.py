"""The foundation: time, tasks, stores, RPC, configuration, telemetry, simulation.

Contains no term of a system: no GPU, no job, no node. Each package could be a separate library.
"""
