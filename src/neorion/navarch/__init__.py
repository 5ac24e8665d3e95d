"""The fleet: pools across clouds, GPU health, autoscaling, cordon, replace, drain.

Knows no other system: they meet through marks on nodes and through each other's public RPC.
"""
