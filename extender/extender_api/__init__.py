"""The scheduler extender's HTTP API: the verbs filter, prioritize, preempt and bind.

May import `scheduler.binder`, `metrics`, `preemption`, `cycle`, `serving` and the packages below them, but not
`client`: bind calls the API server through a protocol. The package has no scheduling rules: a verb decodes the request,
calls `cycle` and encodes the result. It reads no files and no command line; `app` builds it.
"""
