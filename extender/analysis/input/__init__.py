"""Read the objects of recorded clusters from files and standard input.

The package may import `api`, `config`, `basics` and the packages below them. It does not load a cache, connect to a
cluster, or depend on a command line or terminal.
"""
