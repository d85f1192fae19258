"""Code that several built-in plugins share: resource scores, and the members of pod groups.

The package may import `framework` and the packages below it. It contains no plugin.
"""
