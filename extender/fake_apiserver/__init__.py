"""Serve the part of the Kubernetes API that a scheduler uses, from memory, for tests and the demo.

`server.FakeApiServer` serves the API over HTTP, in the running event loop and on a free loopback port.
`registry.api.Api` has the same operations without HTTP. `kubelets` simulates the kubelets. Objects are plain
dictionaries. A stored object is never mutated.

The package may import `api` and `basics`. It has no controllers. Nothing creates pods for a ReplicaSet,
updates a disruption budget or binds a volume claim. It stores nothing on disk, checks no credentials and makes no
scheduling decision. Server-side apply and the schemas for `kubectl explain` are not supported.
"""
