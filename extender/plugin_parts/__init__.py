"""Code shared by several built-in plugins: resource scores, node conditions, in-tree disk limits.

The package may import `framework` and the layers below. It contains no plugin.
"""
