"""The extender over HTTP: the verbs filter and prioritize, health, metrics and the description of the interface.

It may import `observe`, `decide` and all rooms below them. It holds no rule about placement: a verb decodes what was
asked, calls `decide` and spells the answer out. It reads no file and knows no command line; `cli` hands it a cluster.
"""
