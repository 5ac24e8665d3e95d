"""Benchmarks of the Kubernetes kit on a real API server."""
