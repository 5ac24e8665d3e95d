"""Doubles and builders for tests of iris, and of whatever is built on it. Public: import from the modules.

Nothing that runs in production imports this.
"""
