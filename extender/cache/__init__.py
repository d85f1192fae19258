"""The scheduler cache: nodes, pods and other objects in tables with one row for each node.

`cache.Cache` is the only writer. Readers use an immutable `snapshot.Snapshot`. A `hypothesis.Hypothesis` tries out
changes and copies only the arrays it writes. May import `config` (for feature gates), `api` and `basics`. Makes no
scheduling decisions, does no I/O and reads no clock.
"""
