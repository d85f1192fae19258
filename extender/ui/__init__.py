"""Show a cluster and the decisions about its pods as web pages.

The package may import `planning`, `analysis`, `serving` and the packages below them. Pages are made from the same
values as the output of the command line. The package never changes a cluster, sets no cookie, and loads nothing from
other hosts.
"""
