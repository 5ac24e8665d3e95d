"""Loops and appliers of the controller. Each loop builds a view, calls `decide`, checks again and applies the result.

There is one applier per effect: `lifecycle` changes records, `dispatcher` sends orders, and `blob_store` and
`log_store` keep bytes. Decisions are made in `decide` only.
"""
