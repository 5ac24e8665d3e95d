"""The fork server: a daemon that starts tasks by fork and outlives the worker.

It is a program of its own; only its protocol and its folder are shared with the worker.
"""
