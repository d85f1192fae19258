"""What the cluster looks like, in columns: a row a node, a column a fact.

One writer (`state.ClusterState`) keeps the tables; readers hold a `snapshot.Snapshot`, which never changes, and what-if
questions work on a `hypothesis.Hypothesis`, which copies only what it writes. May import `config` (for feature gates),
`objects` and `basics`. Never decides anything, never does I/O, never reads a clock.
"""
