"""Handle the HTTP requests to the fake API server: lists, watches, writes, tables and discovery.

The package may import `registry` and the packages below it.
"""
