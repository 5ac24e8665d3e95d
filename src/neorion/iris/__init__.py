"""Jobs from Python: client, controller, scheduler, autoscaler, workers.

Knows no other system: they meet through marks on nodes and through each other's public RPC.
"""
