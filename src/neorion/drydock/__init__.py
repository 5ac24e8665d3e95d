"""A real Kubernetes on one machine, without Docker.

Nothing here knows what iris, navarch or a development server is.
"""
