"""The HTTP endpoints: requests, lists, watches, tables, discovery and fault injection.

May import `registry` and below.
"""
