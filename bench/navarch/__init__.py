"""The control plane of machines, measured."""
