"""Serve HTTP and HTTPS: sockets, TLS, authentication, authorization, health checks and diagnostic pages.

The package may import `metrics` and the packages below it. It does not know the extender verbs.
"""
