"""An embedded API server: the part of the Kubernetes API that a scheduler uses, over HTTP, in memory.

For tests and the demo. `server.Sandbox` starts it on a free loopback port of the running event loop, `api.Api` is the
same without HTTP, `faults` spoils answers on purpose, `nodes` plays the kubelets, `scenario` lets pods arrive over
time. Objects are plain dictionaries and are never changed once stored.

It may import `objects`, `config` and `basics`. It has no controllers: nothing creates pods for a ReplicaSet, updates a
disruption budget or binds a volume claim. It keeps nothing on disk, checks no credentials and decides no
placement. It knows neither server-side apply nor the schemas that `kubectl explain` shows.
"""
