"""The scheduling cycle as plain functions: who can take a pod, who suits it best, and why.

May import `framework`, `cluster` and below. Imports no plugin: it calls what a `framework.profiles.Profile` holds.
Does no I/O and reads no clock.
"""
