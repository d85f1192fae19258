"""The only room that calls others: the API server (requests, watches, writes, lease, events) and HTTP extenders.

Inside, from the wire up: errors, pacing (rate, backoff, Retry-After), proxies, kubeconfig and credentials, transport
(requests over one session), endpoints (kinds and paths), listwatch, reflector, writes, lease and elector, events and
recorder. Beside them, extender_calls, extenders and texts: outbound HTTP extenders and what they are sent.

It may import `extender.objects`, `extender.config` and `extender.basics`. It never decides anything about placement,
never keeps a second copy of the cluster beyond what a reflector must compare with, and never blocks the event loop.
"""
