"""Benchmarks of the foundation."""
