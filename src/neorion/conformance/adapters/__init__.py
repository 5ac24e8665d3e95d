"""What conformance needs from outside: files, the cluster behind its recorder, and the checks that drive it.

Draws no conclusions: those are in `decide`.
"""
