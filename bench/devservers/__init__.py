"""Benchmarks of devservers."""
