"""Measurements of iris: how fast it decides."""
