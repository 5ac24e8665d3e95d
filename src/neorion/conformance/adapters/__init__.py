"""Conformance's access to the outside: files, the cluster behind its recorder, and the checks that drive it.

Draws no conclusions: those are in `decide`.
"""
