"""Loops and appliers of the controller. Each loop takes a view, asks `decide`, checks again, and carries out the result.

One applier per effect: `lifecycle` changes records, `dispatcher` sends orders, `blob_store` and `log_store` keep bytes.
No rules live here.
"""
