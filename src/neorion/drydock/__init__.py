"""A real Kubernetes on one machine, without Docker: etcd, API server, scheduler, simulated and real nodes, Kueue.

For developers, tests and newcomers; its data is not durable. No system of Neorion may depend on it, and it
depends on none of them. Start from `clusters.ClusterManager`.
"""
