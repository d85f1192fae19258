"""Implement plugins of older kube-scheduler releases, which converted Policy documents use.

These plugins may import the same packages as the other plugins, and do not import each other.
"""
