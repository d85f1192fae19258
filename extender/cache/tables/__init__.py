"""The tables of the cache: node columns, and pod counts by node and by topology domain.

May import `api` and below. Does not know snapshots or assumed pods.
"""
