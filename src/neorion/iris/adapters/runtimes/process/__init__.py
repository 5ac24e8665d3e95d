"""Attempts as processes of this machine: a process tree each, started within milliseconds and ended whole.

The worker holds a `ProcessRuntime` (`process.runtime`) and speaks over a socket to the fork server, a small process of its
own that outlives the worker. A result is read by `process.outcome`, a log that was cut by `process.logs`. Nothing is exported
here, and nothing that the fork server imports may bring asyncio: whatever is loaded is copied at each fork.
"""
