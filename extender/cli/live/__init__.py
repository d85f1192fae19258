"""The commands and options that read a live cluster.

The package may import every package. It contains no scheduling logic and no requests to an API server.
"""
