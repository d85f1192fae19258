"""`extender mcp`: questions about a cluster as read-only tools of a Model Context Protocol server.

The package may import everything below `cli`, and the parts of `cli` that read clusters and scenarios. Only `server.py`
imports the package mcp, which is optional. No tool changes the cluster or reads a file that its caller names.
"""
