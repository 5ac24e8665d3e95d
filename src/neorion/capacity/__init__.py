"""Shared types: GPUs and their faults, labels and taints of nodes, machines and the clouds that sell them.

Contains definitions that several systems share. Decisions about them belong to the
system. `gpu` and `node` are pure; only the packages of clouds do I/O.
"""
