"""Navarch put together: from a configuration and the world's parts to a running control plane.

Chooses and connects: `plane.build` makes a control plane of parts, `serving` one of a file. Nothing is decided and nothing
is done here that a part could do. Imports nothing by itself, because the help of a command passes through here.
"""
