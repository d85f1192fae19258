"""What knows nothing of Kubernetes and could be another project's: clocks, interning, backoff.

May import the standard library only. Never reads a Kubernetes object, a socket or a file.
"""
