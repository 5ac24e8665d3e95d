"""Attempts as process trees of this machine, started within milliseconds and ended completely.

The worker uses a `ProcessRuntime` (`process.runtime`), which calls the fork server over a socket. The fork server is a
small process that outlives the worker. `result_file` reads results, and `log_files` reads trimmed logs. Modules of the
fork server must not import asyncio, because all loaded memory is copied at each fork.
"""
