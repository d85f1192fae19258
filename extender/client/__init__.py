"""The clients of the API server (requests, watches, writes, leases, events) and of HTTP extenders.

From the bottom up: errors, rate_limit, proxies, kubeconfig and credentials, transport (requests over one session),
rest_mapping (kinds and paths), listwatch, reflector, writer, leader_election and leader_elector, events and
event_recorder. extender, extender_transport and raw_objects are for outbound HTTP extenders.

May import `api`, `config` and `basics`. It has no scheduling rules and never blocks the event loop. Only
reflectors keep objects of the cluster.
"""
