"""The registry: stored objects, and the defaults, validation and strategy of each resource.

May import `api` and below. Independent of HTTP.
"""
