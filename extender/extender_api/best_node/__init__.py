"""Filter answers of one node: the choice of the best node, and the pods that are assumed on chosen nodes.

The package imports the scheduling cycle and the cache. It never binds a pod and never writes to an API server.
"""
