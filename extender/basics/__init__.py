"""Provide general data structures and helpers: clock, heap, copy-on-write dictionary, interning, LRU cache.

The package may import only the standard library. It knows no Kubernetes object, and reads no socket. Only
`input_limits` reads files of users.
"""
