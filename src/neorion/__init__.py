"""The control plane for a GPU fleet: products first (iris, navarch, devservers, conformance), keel below them all.

Stays empty, so that importing one system loads only that system.
"""
