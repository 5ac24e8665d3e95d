"""A real Kubernetes on one machine, without Docker: etcd, API server, scheduler, simulated and real nodes, Kueue.

For developers, tests and newcomers; it keeps nothing worth keeping. No system of Neorion may need it to run, and it
knows none of them. Start from `yard.Yard`.
"""
