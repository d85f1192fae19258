"""Store the columns of the nodes, and count pods by node and by topology domain.

The package may import `api` and the packages below it. It knows neither snapshots nor assumed pods.
"""
