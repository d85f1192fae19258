"""The contract between the engine and plugins: what a plugin may be asked, what it may answer, and what follows.

May import `allocation`, `volumes`, `cluster` and below. Knows no plugin: `registry` is handed the catalogue. Only
`runner` calls plugin code.
"""
