"""Allocate devices to resource claims on a node (dynamic resource allocation).

The package may import `cache`, `config`, `api` and `basics`. Its allocator only finds allocations. The plugin
DynamicResources writes them to the API.
"""
