"""Code that several built-in plugins share: resource scores, node conditions, in-tree disk limits.

The package may import `framework` and the packages below it. It contains no plugin.
"""
