"""Dynamic resource allocation: pools of resource slices, allocated devices, and the allocator of claims on a node.

May import cache, config, api and basics. The allocator only finds allocations; the plugin DynamicResources writes them
to the API.
"""
