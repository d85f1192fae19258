"""Experiments: place the pods of a trace on an empty cluster with several policies, and compare the allocated GPUs.

The package may import `app` and the packages below it. It reads no command line and writes to no terminal.
"""
