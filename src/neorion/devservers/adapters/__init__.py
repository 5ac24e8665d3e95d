"""What stands between this system and a cluster that does not know it yet: the installation, and users' namespaces.

What servers are made of belongs to `decide`, what users ask of them to `client`.
"""
