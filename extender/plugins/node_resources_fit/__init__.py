"""Implement the plugin NodeResourcesFit, with its scoring strategies and queueing hints."""
