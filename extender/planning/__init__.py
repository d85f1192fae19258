"""Answer questions about changes of a cluster: `fits`, `what-if`, sweeps, `compare` and `rebalance`.

The package may import `analysis` and the packages below it. It computes on a cache and returns values and text. It does
not read files, connect to a cluster, or depend on a command line or terminal.
"""
