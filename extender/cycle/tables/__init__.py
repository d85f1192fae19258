"""The cached results of Filter and Score plugins, as tables with one row per plugin and one column per node.

The package may import `framework`, `cache` and the packages below them. It imports no other module of `cycle`, no
plugin, does no I/O and reads no clock.
"""
