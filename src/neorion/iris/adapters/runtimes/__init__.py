"""Runtimes: one folder or module for each way in which a worker runs an attempt.

Each keeps the contract in `tests/contracts/test_runtime.py`. The controller decides what runs, when and where.
"""
