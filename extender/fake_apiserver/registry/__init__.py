"""Store the objects of the fake API server, with the defaults, validation and strategy of each resource.

The package may import `api` and the packages below it. It does not depend on HTTP.
"""
