"""The programs of a cluster, by the names its manifests use.

Doors only. No logic.
"""
