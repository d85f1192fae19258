"""Implement the scheduling cycle and the binding cycle as plain functions.

The scheduling cycle runs PreFilter, Filter, PostFilter, PreScore and Score plugins and selects a node. The package may
import `framework`, `cache` and the packages below them. It imports no plugin, but calls the plugins of a
`framework.profiles.Profile`. It does no I/O and reads no clock.
"""
