"""DynamicResources: the plugin, its options, filter and scores, the pod's claims, and the API calls that bind them.

The package may import `extender.dra`.
"""
