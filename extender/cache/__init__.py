"""Keep the nodes, pods and other objects of the cluster in tables with one row for each node.

This is the scheduler cache. `cache.Cache` is the only writer. Readers use an immutable `snapshot.Snapshot`. A
`hypothesis.Hypothesis` is a snapshot for dry runs: pods can be added to it and removed from it. It copies only the
arrays that change.

The package may import `config` (for feature gates), `api` and `basics`. It makes no scheduling decision, does no I/O
and reads no clock.
"""
