"""Where iris touches the world: each loop takes a view, asks `decide`, looks once more, and carries out what it was told.

One applier per effect: `lives` moves records, `dispatch` tells workers, `blobs` and `shelf` keep bytes. No rules live here.
"""
