"""HTTP/1.1 over connections of our own: requests and answers as bytes, links, dialling, proxies, kept connections.

Knows nothing of what travels: the Kubernetes client and the RPC client both stand on it.
"""
