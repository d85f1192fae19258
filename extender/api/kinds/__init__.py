"""Define the Kubernetes kinds that scheduling reads, as frozen structs with only the fields that it or plugins read.

The package may import `basics`. It contains only fields and their defaults. The modules of `api` interpret them.
"""
