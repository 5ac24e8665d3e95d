"""The trade's shared words: GPUs and their faults, nodes and their marks, machines and the clouds that sell them.

Here stands what more than one system must say in the same way. What a system decides about these things stands with the
system. `gpu` and `node` are pure; only the folders of clouds reach outside.
"""
