"""Plugins of older kube-scheduler releases, for converted Policy documents.

They may import the same packages as `plugins`, but not each other.
"""
