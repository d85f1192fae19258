"""What is served over HTTP: the extender's four verbs, and the HTTPS service of a standalone scheduler.

It may import `carrying`, `observe`, `preemption`, `decide` and all rooms below them, but not `client`: what bind needs
of an API server is a protocol. It holds no rule about placement: a verb decodes what was asked, calls `decide` and
spells the answer out. It reads no file but certificates and knows no command line; `process` hands it what it serves.
"""
