"""An HTTP/1.1 client: requests and responses as bytes, connections, dialling, proxies, and a connection pool.

Independent of the content: the Kubernetes client and the RPC client both use it.
"""
