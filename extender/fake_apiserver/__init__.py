"""A fake API server: the part of the Kubernetes API that a scheduler uses, over HTTP, in memory.

Tests and the demo use it. `server.FakeApiServer` serves it in the running event loop on a free loopback port,
`registry.api.Api` has the same operations without HTTP, `endpoints.fault_injection` injects faults, `kubelets`
simulates the kubelets, `scenario` creates and deletes objects over time. Objects are plain dictionaries and are never
mutated once stored.

May import `api`, `config` and `basics`. It has no controllers: nothing creates pods for a ReplicaSet, updates a
disruption budget or binds a volume claim. It stores nothing on disk, checks no credentials and makes no scheduling
decision. Server-side apply and the schemas for `kubectl explain` are not supported.
"""
