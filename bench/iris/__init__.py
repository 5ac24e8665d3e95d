"""Benchmarks of the job system."""
