"""Kubernetes AI conformance: the checks, their controls, the report.

Knows no other system: they meet through marks on nodes and through each other's public RPC.
"""
