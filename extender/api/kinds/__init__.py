"""The Kubernetes kinds that scheduling reads, as frozen structs without the fields that are not read.

May import `basics`. Contains fields and defaults only; the modules of `api` interpret them.
"""
