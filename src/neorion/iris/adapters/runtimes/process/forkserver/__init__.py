"""The fork server: a daemon that starts tasks by fork and outlives the worker.

It is a separate program, and shares only its protocol and its folder with the worker.
"""
