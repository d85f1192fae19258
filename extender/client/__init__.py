"""The only room that talks to the API server: credentials, requests, watches, writes, the leader lease, events.

Inside, from the wire up: errors, pacing (rate, backoff, Retry-After), proxies, kubeconfig and credentials, transport
(requests over one session), endpoints (kinds and paths), listwatch, reflector, writes, lease and
elector, events and recorder.

It may import `extender.objects`, `extender.config` and `extender.basics`. It never decides anything about placement,
never keeps a second copy of the cluster beyond what a reflector must compare with, and never blocks the event loop.
"""
