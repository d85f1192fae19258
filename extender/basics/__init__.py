"""Provide general data structures and helpers: clock, backoff, heap, copy-on-write map, interning, LRU cache.

The package may import only the standard library. It knows no Kubernetes object, and reads no socket. Only
`input_limits` opens and reads files.
"""
