"""General building blocks without any Kubernetes knowledge: clock, backoff, heap, copy-on-write map, interning, LRU.

May import the standard library only. Never reads a Kubernetes object, a socket or a file.
"""
