"""The extender over HTTP: its four verbs, health, metrics and the description of the interface.

It may import `observe`, `preemption`, `decide` and all rooms below them, but not `client`: what bind needs of an API
server is a protocol. It holds no rule about placement: a verb decodes what was
asked, calls `decide` and spells the answer out. It reads no file and knows no command line; `cli` hands it a cluster.
"""
