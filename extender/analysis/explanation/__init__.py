"""Format the explanation of a pod as text and as plain values.

The package may import `cycle` and the packages below it. It runs no plugin, reads no file and writes nothing.
"""
