"""The scheduling cycle as plain functions: PreFilter, Filter, PostFilter, Score, host selection; the binding cycle.

May import `framework`, `cache` and below. Imports no plugin: it calls the plugins of a `framework.profiles.Profile`.
Does no I/O and reads no clock.
"""
