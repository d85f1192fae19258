"""The plugin DynamicResources: its options, a pod's claims, the question about nodes, the writes that follow.

Knows `extender.allocation` and what every plugin knows; no other plugin.
"""
