"""Answer the HTTP requests that kube-scheduler sends to an extender: filter, prioritize, preempt and bind.

The package may import `scheduler.binder`, `metrics`, `serving`, `preemption`, `cycle` and the packages below them. It
may not import `client`: bind calls the API server through a protocol. The package has no scheduling rules. A verb
decodes the request, calls `cycle` and encodes the result. The package reads no files and no command line, because `app`
passes all settings.
"""
