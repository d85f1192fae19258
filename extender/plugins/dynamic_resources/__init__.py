"""Implement the plugin DynamicResources, which allocates devices to the claims of a pod.

The package may import `dra`, in addition to what all plugins may import.
"""
