"""The systems together on one machine: what `make demo` shows.

Uses each system's own door, its app and its client. No rule and no part of a system lives here.
"""
