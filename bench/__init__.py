"""Measurements, each beside its reference in the same run: `python -m bench [NAME…]`.

A file of bench/<system>/ is one benchmark: `run(report)` measures and reports. No tests live here, and nothing imports it.
"""
