"""How a worker runs an attempt: one folder or module for each way.

Every one keeps the contract in `tests/contracts/test_runtime.py`. What to run, when and where is decided elsewhere.
"""
