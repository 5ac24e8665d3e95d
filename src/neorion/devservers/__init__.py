"""Development servers: operator, SSH bastion, devctl.

Knows no other system: they meet through marks on nodes and through each other's public RPC.
"""
