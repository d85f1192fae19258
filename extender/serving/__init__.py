"""HTTP serving: sockets, TLS, authentication, authorization, health checks and the diagnostic pages.

May import `framework` and below. Knows nothing of the extender verbs.
"""
