"""The commands about changes of a cluster: `fits`, `what-if`, sweeps, `compare` and `rebalance`.

The package may import everything below `cli`, and the options of `cli` that its commands share. It reads the input and
the flags, and writes text. It makes no decisions.
"""
